/**
 * What the tests of the API share: an app on a real engine, and a client that holds every answer against the document.
 * It has a test of its own: a check that lets everything through would prove nothing.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEngine, type Engine, type EngineOptions } from '@redrive/engine';
import { memory } from '@redrive/engine/memory';
import { sqlite } from '@redrive/engine/sqlite';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify';
import type { Notifications } from '@redrive/notifications';
import pino from 'pino';
import { type Clock, type IdempotencyStore, memoryIdempotency } from 'redrive';
import { systemClock } from 'redrive/internal';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createCriteria } from '../criteria/index.ts';
import { RouteCounts } from '../observe/metrics/route-counts.ts';
import { createRouting, type Routing } from '../routing/index.ts';
import { CriterionCounts } from '../observe/metrics/criterion-counts.ts';
import { createMetricSet } from '../observe/metrics/registry.ts';
import type { EventFeed, Readiness, ServiceContext } from '../service-context.ts';
import type { Settings } from '../settings/settings.ts';
import { buildApp } from './app.ts';
import type { ConnectionLimits } from './limits/connections.ts';
import { documentOf } from './openapi.ts';

export const settings: Settings = {
  serviceName: 'retry-scheduler',
  host: '127.0.0.1',
  port: 0,
  tokens: [],
  maxRequestBytes: 8 * 1024 * 1024,
  requestTimeoutMs: 30_000,
  rateLimit: 1_000_000,
  dataDir: '.',
  pollMs: 10_000,
  queueType: 'classic',
  retryQueue: 'retry.scheduled',
  manualReviewQueue: 'manual-review.pending',
  deadLetterBindings: ['#'],
  natsRetrySubject: 'retry.scheduled',
  natsDeadLetterStreams: [],
  natsReplicas: 1,
  natsRouting: 'on',
  natsRoutingSubject: 'redrive.route',
  kafkaTls: 'off',
  unclassifiedAs: 'transient',
  policy: { maxAttempts: 4, base: '2s', cap: '60s', jitter: 'none', retryOn: ['transient'] },
  policies: { patient: { maxAttempts: 9, base: '1m', jitter: 'none' } },
  lane: {},
  lanes: {},
  rules: [],
  maxPayloadBytes: 64 * 1024,
  httpAllow: [],
  secrets: {},
  criteria: {},
  criterionRateLimit: 1_000_000,
  criterionReview: true,
  cyodaTags: ['retry-timing'],
  routingGateway: 'off',
  routingGatewayMaxBodyBytes: 1024 * 1024,
  routingGatewayIdleMs: 120_000,
  routingGatewayConcurrency: 1000,
  variables: {},
  notifications: 'off',
  notificationPrefix: 'notifications',
  notificationDeadLetters: 'kafka:notifications.dead-letter',
  notificationEvents: 'kafka:notification-events',
  notificationReports: 'kafka:notification-reports',
  notificationExisting: 'return',
  notificationConcurrency: 100,
  notificationRetentionDays: 7,
  inboxRetentionDays: 30,
  inboxMaxItems: 1_000_000,
  audit: true,
  auditSink: 'store',
  auditSubject: 'redrive.audit',
  auditRetentionDays: 90,
  logLevel: 'silent',
  logFormat: 'json',
};

export interface Answered {
  method: string;
  route: string;
  status: number;
}

export interface Stage {
  app: FastifyInstance;
  engine: Engine;
  /** Sends a request as a local client would, and holds the answer against the document. */
  ask(request: Ask): Promise<Answer>;
  get(url: string): Promise<Answer>;
  post(url: string, body?: unknown): Promise<Answer>;
  /** Waits until such an action of an operator stands in the audit trail. */
  audited(wanted: object): Promise<void>;
  answered: Answered[];
  logged: string[];
  feed: TestFeed;
  readiness: Readiness;
  routing: Routing;
}

export interface Ask {
  url: string;
  headers?: InjectOptions['headers'];
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS';
  body?: unknown;
  /** As it is, instead of `body`. */
  text?: string | Buffer;
}

export interface Answer {
  status: number;
  headers: LightMyRequestResponse['headers'];
  /** What JSON says; undefined: it is none. */
  body: unknown;
  text: string;
}

/** What stands at that place of some JSON; undefined: nothing does. */
export function at(value: unknown, ...path: (string | number)[]): unknown {
  let found = value;
  for (const step of path) found = (Object(found) as Record<string, unknown>)[step];
  return found;
}

/** The same where a text or a number has to stand, as a text. */
export function textAt(value: unknown, ...path: (string | number)[]): string {
  const found = at(value, ...path);
  expect(['string', 'number'], `nothing at ${path.join('.')}`).toContain(typeof found);
  return String(found);
}

export function listAt(value: unknown, ...path: (string | number)[]): unknown[] {
  const found = at(value, ...path);
  expect(found).toBeInstanceOf(Array);
  return found as unknown[];
}

/** A feed whose events the test makes. */
export class TestFeed implements EventFeed {
  readonly readers = new Set<(text: string) => void>();
  readonly lastIds: (string | undefined)[] = [];

  read(lastEventId: string | undefined, write: (text: string) => void): () => void {
    this.lastIds.push(lastEventId);
    this.readers.add(write);
    return () => this.readers.delete(write);
  }

  say(text: string): void {
    for (const write of this.readers) write(text);
  }
}

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

export interface StageOptions extends Partial<Settings> {
  connections?: ConnectionLimits;
  store?: 'memory' | 'sqlite';
  engine?: Engine;
  engineOptions?: Partial<EngineOptions>;
  /** Of everything but the engine. */
  clock?: Clock;
  idempotency?: IdempotencyStore;
  notificationService?: Notifications;
}

/** An app on a real engine; both end with the test. */
export async function stage(options: StageOptions = {}): Promise<Stage> {
  const { store = 'memory', engine: given, engineOptions, connections, ...rest } = options;
  const { clock = systemClock, idempotency = memoryIdempotency(), ...more } = rest;
  const { notificationService: notifications, ...changed } = more;
  const all: Settings = { ...settings, ...changed };
  const engine = given ?? createEngine({ ...engineSettings(all, store), ...engineOptions });
  cleanups.push(() => engine.stop());
  const answered: Answered[] = [];
  const logged: string[] = [];
  const feed = new TestFeed();
  const readiness: Readiness = { ready: true, checks: [] };
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) });
  const criteria = createCriteria({
    settings: all,
    instance: 'test-1',
    clock,
    log,
    counts: new CriterionCounts(createMetricSet()),
  });
  criteria.attach(engine);
  cleanups.push(() => criteria.stop());
  const routing = await createRouting({
    settings: all,
    log,
    clock,
    counts: new RouteCounts(createMetricSet()),
    audit: (entry) => engine.audit(entry),
  });
  cleanups.push(() => routing.stop());
  await routing.start();
  const context: ServiceContext = {
    settings: all,
    instance: 'test-1',
    engine,
    clock,
    log,
    feed,
    metrics: {
      contentType: 'text/plain; version=0.0.4',
      text: async () => 'retry_queue_depth 0\n',
      answered: ({ method, route, status }) => void answered.push({ method, route, status }),
    },
    health: { ready: async () => readiness },
    idempotency,
    criteria,
    routing,
    notifications,
  };
  const app = await buildApp(context, connections);
  cleanups.push(() => app.close());
  const ask = async (request: Ask) => {
    const answer = await send(app, request);
    expectDeclared(app, request, answer);
    return answer;
  };
  return {
    app,
    engine,
    ask,
    get: (url) => ask({ url }),
    post: (url, body) => ask({ method: 'POST', url, body }),
    audited: (wanted) =>
      vi.waitFor(
        async () => {
          const { events } = await engine.auditEvents({ type: 'operator_action', limit: 100 });
          expect(events.map(({ event }) => event)).toContainEqual(expect.objectContaining(wanted));
        },
        { timeout: 20_000 },
      ),
    answered,
    logged,
    feed,
    readiness,
    routing,
  };
}

function engineSettings(all: Settings, store: 'memory' | 'sqlite'): EngineOptions {
  const { policy, policies, lanes, lane, maxPayloadBytes, audit } = all;
  const rest = { policy, policies, lanes, lane, maxPayloadBytes, audit, log: quiet };
  if (store === 'memory') return { store: memory(), ...rest };
  const folder = mkdtempSync(join(tmpdir(), 'redrive-http-'));
  cleanups.push(async () => rmSync(folder, { recursive: true, force: true }));
  return { store: sqlite(join(folder, 'tasks.db')), ...rest };
}

const quiet = Object.fromEntries(
  ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].map((level) => [level, () => undefined]),
) as unknown as NonNullable<EngineOptions['log']>;

/** Without looking at the answer. */
export async function send(app: FastifyInstance, request: Ask): Promise<Answer> {
  const { body, text, headers, method = 'GET', ...rest } = request;
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const payload = text ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await app.inject({
    method,
    ...rest,
    headers: { host: '127.0.0.1:8086', ...type, ...headers },
    ...(payload === undefined ? {} : { payload }),
  });
  const isJson = String(response.headers['content-type']).includes('json');
  return {
    status: response.statusCode,
    headers: response.headers,
    body: isJson && response.body !== '' ? (JSON.parse(response.body) as unknown) : undefined,
    text: response.body,
  };
}

/** Every answer has a status and a body that the document declares. */
function expectDeclared(app: FastifyInstance, request: Ask, answer: Answer): void {
  const { method = 'GET', url } = request;
  const fault = undeclared(app, method, url, answer);
  expect(fault, `${method} ${url} ${answer.text.slice(0, 500)}`).toBeUndefined();
}

/** As much of the document as tests look at. */
export interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object> };
}

export interface Operation {
  operationId: string;
  summary?: string;
  tags?: string[];
  'x-role'?: string;
  security?: unknown[];
  requestBody?: { required: boolean; content: Record<string, { schema: object }> };
  responses: Record<string, { description: string; content?: Record<string, { schema: object }> }>;
}

/** By the text of the document: most apps have the same. */
const validators = new Map<string, (path: string) => Validate>();

type Validate = (body: unknown) => string | undefined;

/** What an answer has that the document does not. */
export function undeclared(
  app: FastifyInstance,
  method: string,
  url: string,
  answer: Answer,
): string | undefined {
  const [path = ''] = url.split('?');
  const document = documentOf(app) as Document;
  const isPath = (pattern: string) =>
    new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path);
  // Names before parameters, as the router has it.
  const found = Object.keys(document.paths)
    .filter((pattern) => isPath(pattern) && document.paths[pattern]?.[method.toLowerCase()])
    .sort((a, b) => a.split('{').length - b.split('{').length)[0];
  if (found === undefined) {
    // What is not there is in no document.
    return at(answer.body, 'code') === undefined ? `no route for ${path}` : undefined;
  }
  const declared = document.paths[found]?.[method.toLowerCase()]?.responses[answer.status];
  if (!declared) return `${answer.status} is not declared`;
  const type = String(answer.headers['content-type']).split(';')[0]!;
  if (!declared.content?.[type]) return `${type} is not declared for ${answer.status}`;
  if (!type.includes('json')) return undefined;
  const pointer = [found, method.toLowerCase(), 'responses', answer.status, 'content', type]
    .map((part) => String(part).replaceAll('~', '~0').replaceAll('/', '~1'))
    .join('/');
  return validatorsOf(document)(`#/paths/${encodeURI(pointer)}/schema`)(answer.body);
}

function validatorsOf(document: Document): (path: string) => Validate {
  const text = JSON.stringify(document);
  let validatorAt = validators.get(text);
  if (!validatorAt) {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
    ajv.addSchema(document, 'document');
    const known = new Map<string, Validate>();
    validatorAt = (path) => {
      const check = ajv.compile({ $ref: `document${path}` });
      const validate =
        known.get(path) ??
        ((body: unknown) => (check(body) ? undefined : ajv.errorsText(check.errors)));
      known.set(path, validate);
      return validate;
    };
    validators.set(text, validatorAt);
  }
  return validatorAt;
}

export const id = (digit: number) => `00000000-0000-4000-8000-${String(digit).padStart(12, '0')}`;

describe('the check of answers', () => {
  it('finds an undeclared status, type and field', async () => {
    const { app } = await stage();
    const good = await send(app, { url: '/health/ready' });
    const judge = (changes: Partial<Answer>) =>
      undeclared(app, 'GET', '/health/ready', { ...good, ...changes });
    expect(judge({})).toBeUndefined();
    expect(judge({ status: 418 })).toContain('418');
    expect(judge({ headers: { 'content-type': 'text/html' } })).toContain('text/html');
    expect(judge({ body: { ready: 'yes', checks: [] } })).toContain('boolean');
    expect(undeclared(app, 'GET', '/nowhere', good)).toContain('no route');
  });
});
