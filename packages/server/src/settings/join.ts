/** What fits together, and what the file adds: policies, lanes, rules, secrets. */
import { isIPv4 } from 'node:net';
import type { EngineOptions, LaneOptions } from '@redrive/engine';
import {
  criterionConfig,
  type CriterionSettings,
  type DefinedPolicy,
  type Fault,
  isConfigError,
  parsePolicy,
  type Policy,
  presets,
} from 'redrive';
import { didYouMean, joinPath, overlay, type Values as Fields } from 'redrive/internal';
import { DEAD_LETTER_QUEUE, OVERSIZED_QUEUE } from '../scheduler/queues.ts';
import { checkAudit } from './audit.ts';
import { readCriteria } from './criteria.ts';
import { checkCyoda } from './cyoda.ts';
import { checkKafka } from './kafka.ts';
import { checkNats } from './nats.ts';
import { checkNotifications } from './notifications.ts';
import { readRules } from './rules.ts';
import { readSecrets } from './secrets.ts';
import type { Settings, Values } from './settings.ts';
import { variables } from './variables.ts';

/** What only the file can say. */
export const parts = [
  'policy',
  'policies',
  'lane',
  'lanes',
  'rules',
  'secrets',
  'criteria',
] as const;

interface Parts {
  values: Values;
  /** The names, in the environment, of what somebody has set. */
  written: ReadonlySet<string>;
  config: Readonly<Fields>;
  env: Readonly<Record<string, string>>;
  /** What paths are relative to. */
  cwd: string;
  isTty: boolean;
}

interface Joined {
  settings: Settings;
  faults: Fault[];
  warnings: string[];
}

export async function joinSettings(given: Parts): Promise<Joined> {
  const { values, config, isTty } = given;
  const {
    defaultMaxRetries: _,
    baseDelayMs: _base,
    maxDelayMs: _max,
    logFormat,
    ...plain
  } = values;
  const faults: Fault[] = [];
  const criteria = readCriteria(config['criteria'], values, faults);
  const policy = readPolicy(given, faults);
  const lane = await readLane(config['lane'] ?? {}, 'lane', { policy }, faults);
  const settings: Settings = {
    ...withoutDots(plain),
    criteria,
    variables: values.routingGateway === 'on' ? given.env : {},
    cyodaTags: values.cyodaTags ?? tagsOf(criteria),
    tokens: values.tokens ?? [],
    maxRequestBytes:
      values.maxRequestBytes ?? Math.max(8 * MiB, bytesInBase64(values.maxPayloadBytes)),
    logFormat: logFormat ?? (isTty ? 'pretty' : 'json'),
    policy,
    policies: readPolicies(config['policies'], faults),
    lane,
    lanes: await readLanes(config['lanes'], { policy, lane }, faults),
    rules: readRules(config['rules'], faults),
    secrets: readSecrets(config['secrets'], given.env, faults),
  };
  const delivery = await checkDelivery(settings);
  const cyoda = checkCyoda(settings, isLoopback);
  faults.push(...delivery.faults, ...checkQueues(settings), ...checkHost(settings));
  const nats = checkNats(settings, given.written);
  const kafka = checkKafka(settings, given.written, given.cwd);
  const audit = checkAudit(settings, given.written);
  faults.push(...cyoda.faults, ...nats.faults, ...kafka.faults, ...audit.faults);
  const warnings = [...warningsOf(settings, given), ...delivery.warnings];
  warnings.push(...cyoda.warnings, ...nats.warnings, ...kafka.warnings, ...audit.warnings);
  warnings.push(...checkNotifications(settings, given.written));
  return { settings, faults, warnings };
}

/** Without those that stand inside an object of the file, which is a setting by itself. */
function withoutDots<T extends object>(values: T): Omit<T, `${string}.${string}`> {
  const kept = Object.entries(values).filter(([name]) => !name.includes('.'));
  return Object.fromEntries(kept) as Omit<T, `${string}.${string}`>;
}

function tagsOf({ calculationNodesTags }: CriterionSettings): string[] {
  const text = calculationNodesTags ?? criterionConfig().calculationNodesTags;
  const tags = text.split(',').map((tag) => tag.trim());
  return tags.filter((tag) => tag !== '');
}

/** What HTTP deliveries may connect to. A service that only its own machine reaches may reach that machine. */
export function allowOf({ host, httpAllow }: Settings): readonly string[] {
  return isLoopback(host) ? [...httpAllow, 'loopback'] : httpAllow;
}

const MiB = 1024 * 1024;
/** Of a request, beside its payload. */
const OTHER_BYTES = 64 * 1024;

/** A request with a payload of that size, written as base64. */
function bytesInBase64(payloadBytes: number): number {
  return Math.ceil(payloadBytes / 3) * 4 + OTHER_BYTES;
}

/** Whether nobody but this machine can connect there. */
function isLoopback(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[|\]$/g, '');
  return bare === 'localhost' || bare === '::1' || (isIPv4(bare) && bare.startsWith('127.'));
}

/** The scheduler's, then the file, then what the variables say, field by field. The whole of it is the engine's default. */
function readPolicy({ values, written, config }: Parts, faults: Fault[]): Policy {
  const own = config['policy'];
  const isOwn = own !== undefined && checkedPolicy(own, 'policy', faults) !== undefined;
  const usual = { policy: presets.scheduler, origin: 'the default of the service' };
  const file = { policy: own as Policy, origin: 'the configuration file' };
  const policy = isOwn ? overlay([usual, file]) : usual.policy;
  const isSaid = (name: 'defaultMaxRetries' | 'baseDelayMs' | 'maxDelayMs') =>
    !isOwn || written.has(variables[name].env);
  return {
    // Its fields alone: what is changed below is not the policy that was defined.
    ...(Object.fromEntries(Object.entries(policy)) as Policy),
    ...(isSaid('defaultMaxRetries') ? { maxAttempts: values.defaultMaxRetries + 1 } : {}),
    ...(isSaid('baseDelayMs') ? { base: values.baseDelayMs } : {}),
    ...(isSaid('maxDelayMs') ? { cap: values.maxDelayMs } : {}),
  };
}

function readPolicies(data: unknown, faults: Fault[]): Record<string, Policy> {
  const policies: Record<string, Policy> = {};
  for (const [name, policy] of entries(data, 'policies', 'policies by name', faults)) {
    if (checkedPolicy(policy, joinPath('policies', name), faults))
      policies[name] = policy as Policy;
  }
  return policies;
}

function checkedPolicy(data: unknown, path: string, faults: Fault[]): DefinedPolicy | undefined {
  try {
    return parsePolicy(data);
  } catch (error) {
    addFaults(error, path, faults);
    return undefined;
  }
}

/** What an engine has for all its lanes: a policy of a lane lies over it. */
type Wider = Pick<EngineOptions, 'policy' | 'lane'>;

async function readLanes(
  data: unknown,
  wider: Wider,
  faults: Fault[],
): Promise<Record<string, LaneOptions>> {
  const lanes: Record<string, LaneOptions> = {};
  for (const [name, lane] of entries(data, 'lanes', 'limits by lane', faults)) {
    const path = joinPath('lanes', name);
    const meant = laneMeant(name);
    if (meant !== name) {
      const message = `is not a lane such as 'queue:orders', 'nats:orders.eu', 'kafka:orders' or 'https://api.example.com'.${didYouMean(meant)}`;
      faults.push({ path, code: 'INVALID_VALUE', message });
    }
    lanes[name] = await readLane(lane, path, wider, faults);
  }
  return lanes;
}

/** The lane that a name means: itself where it is one. Limits of any other name would be those of nothing. */
function laneMeant(name: string): string | undefined {
  if (/^(queue|nats|kafka):/.test(name)) return /:.+/s.test(name) ? name : undefined;
  const { protocol, origin } = URL.parse(name) ?? {};
  if (protocol === 'http:' || protocol === 'https:') return origin;
  return /[:/]/.test(name) ? undefined : `queue:${name}`;
}

/** The engine knows best what a lane may be told. */
async function readLane(
  data: unknown,
  path: string,
  wider: Wider,
  faults: Fault[],
): Promise<LaneOptions> {
  if (Object(data) !== data || Object.keys(data as object).length > 0) {
    const { createEngine } = await import('@redrive/engine');
    const { memory } = await import('@redrive/engine/memory');
    try {
      createEngine({ store: memory(), ...wider, ...laneAt(path, data as LaneOptions) });
    } catch (error) {
      addFaults(error, path, faults);
      return {};
    }
  }
  return data as LaneOptions;
}

function laneAt(path: string, lane: LaneOptions): Pick<EngineOptions, 'lane' | 'lanes'> {
  return path === 'lane' ? { lane } : { lanes: { [path.slice('lanes.'.length)]: lane } };
}

/** The delivery knows best what it may be told, and where it may connect to. */
async function checkDelivery(
  settings: Settings,
): Promise<{ faults: readonly Fault[]; warnings: string[] }> {
  const { httpAllow, secrets } = settings;
  const named = originsIn(settings);
  const webhooks = webhookNames.flatMap((name) => {
    const url = settings[name];
    return url === undefined ? [] : [{ url, path: variables[name].env }];
  });
  const isPlain = httpAllow.length === 0 && Object.keys(secrets).length === 0;
  const receiver = receiverIn(settings);
  if (isPlain && webhooks.length === 0 && named.length === 0 && receiver === undefined) {
    return { faults: [], warnings: [] };
  }
  const { http } = await import('@redrive/engine/http');
  try {
    const delivery = http({ allow: allowOf(settings), public: false, secrets });
    const isRefused = (address: string) =>
      delivery.check({ kind: 'http', address }, undefined).some(isOfAddress);
    const warnings = named
      .filter(({ origin }) => isRefused(origin))
      .map(({ path }) => `${path}: has no effect, its host is not in REDRIVE_HTTP_ALLOW.`);
    if (receiver !== undefined && isRefused(receiver)) warnings.push(refusedReceiver(receiver));
    const refused = webhooks.filter(({ url }) => isRefused(url));
    return { faults: refused.map(refusedWebhook), warnings };
  } catch (error) {
    const faults: Fault[] = [];
    addFaults(error, '', faults);
    return { faults: faults.map((fault) => ofAllow(fault, httpAllow)), warnings: [] };
  }
}

const webhookNames = [
  'inboxWebhookUrl',
  'retryRateWebhookUrl',
  'criterionOperationsWebhookUrl',
  'criterionDevelopmentWebhookUrl',
] as const;

function refusedWebhook({ url, path }: { url: string; path: string }): Fault {
  const { hostname } = new URL(url);
  const message = `its host '${hostname}' is not in REDRIVE_HTTP_ALLOW, so nothing could be sent there. Add it to that list.`;
  return { path, code: 'INVALID_VALUE', message };
}

/** Where retries of notifications are posted. */
function receiverIn({ notifications, notificationDelivery = '' }: Settings): string | undefined {
  if (notifications === 'off') return undefined;
  return /^https?:/.test(notificationDelivery) ? notificationDelivery : undefined;
}

function refusedReceiver(url: string): string {
  const { hostname } = new URL(url);
  return `NOTIFICATION_DELIVERY: its host '${hostname}' is not in REDRIVE_HTTP_ALLOW, so due retries wait. Set REDRIVE_HTTP_ALLOW=${hostname}, or add it to that list.`;
}

function isOfAddress({ code }: { code: string }): boolean {
  return code === 'ADDRESS_REFUSED';
}

/** What the list is called where somebody wrote it. */
function ofAllow(fault: Fault, httpAllow: readonly string[]): Fault {
  const [first, index] = fault.path.split('.');
  if (first !== 'allow') return fault;
  const message = `'${httpAllow[Number(index)] ?? ''}': ${fault.message}`;
  return { ...fault, path: variables.httpAllow.env, message };
}

/** Every origin that lanes and secrets name, with its place in the file. */
function originsIn({ lanes, secrets }: Settings): { path: string; origin: string }[] {
  const ofLanes = Object.keys(lanes)
    .filter((lane) => /^https?:/.test(lane))
    .map((origin) => ({ path: joinPath('lanes', origin), origin }));
  const ofSecrets = Object.entries(typeof secrets === 'function' ? {} : secrets).flatMap(
    // The form of a secret is checked elsewhere.
    ([name, secret]) =>
      [(Object(secret) as Partial<typeof secret>).origins ?? []]
        .flat()
        .map((origin) => ({ path: `secrets.${name}: ${origin}`, origin: String(origin) })),
  );
  return [...ofLanes, ...ofSecrets].filter(({ origin }) => URL.canParse(origin));
}

function checkQueues({ retryQueue, manualReviewQueue }: Settings): Fault[] {
  const faults: Fault[] = [];
  const [retry, review] = [variables.retryQueue.env, variables.manualReviewQueue.env];
  if (retryQueue === manualReviewQueue) {
    const message = `'${retryQueue}' is ${retry} too: what failed for good would come in again. Give it another name.`;
    faults.push({ path: review, code: 'INVALID_VALUE', message });
  }
  for (const [path, name] of [
    [retry, retryQueue],
    [review, manualReviewQueue],
  ] as const) {
    const use = reserved.get(name);
    if (use === undefined) continue;
    const message = `'${name}' is where Redrive ${use}. Give it another name.`;
    faults.push({ path, code: 'INVALID_VALUE', message });
  }
  return faults;
}

const reserved = new Map([
  [DEAD_LETTER_QUEUE, 'takes in dead letters'],
  [OVERSIZED_QUEUE, 'puts messages that are too large to be stored'],
]);

function checkHost({ host, tokens }: Settings): Fault[] {
  if (isLoopback(host) || tokens.length > 0) return [];
  const message =
    `'${host}' lets others than this machine ask, and there are no tokens. ` +
    'Make one with `redrive token ops --role admin` and put it into REDRIVE_TOKENS, or listen on 127.0.0.1.';
  return [{ path: variables.host.env, code: 'INVALID_VALUE', message }];
}

function warningsOf(settings: Settings, { values, written }: Parts): string[] {
  const warnings: string[] = [];
  const { baseDelayMs, maxDelayMs } = values;
  if (baseDelayMs > maxDelayMs && written.has(variables.baseDelayMs.env)) {
    warnings.push(
      `BASE_DELAY_MS (${baseDelayMs}) is over MAX_DELAY_MS (${maxDelayMs}): every delay is ${maxDelayMs} ms.`,
    );
  }
  const { maxRequestBytes, maxPayloadBytes } = settings;
  const needed = bytesInBase64(maxPayloadBytes);
  if (maxRequestBytes < needed) {
    warnings.push(
      `REDRIVE_MAX_REQUEST_BYTES (${maxRequestBytes}) is too little for the largest payload in base64, so that such requests are refused. With REDRIVE_MAX_PAYLOAD_BYTES=${maxPayloadBytes}, ${needed} are enough.`,
    );
  }
  const { retryRateAlert, retryRateWebhookUrl, audit } = settings;
  if (retryRateAlert !== undefined && !audit) {
    warnings.push('REDRIVE_RETRY_RATE_ALERT: has no effect without REDRIVE_AUDIT.');
  }
  if (retryRateWebhookUrl !== undefined && retryRateAlert === undefined) {
    warnings.push('REDRIVE_RETRY_RATE_WEBHOOK: has no effect without REDRIVE_RETRY_RATE_ALERT.');
  }
  if (settings.rabbitmqUrl === undefined) {
    const idle = ['DEAD_LETTER_EXCHANGE', 'DEAD_LETTER_BINDINGS', 'RETRY_QUEUE'].filter((name) =>
      written.has(name),
    );
    if (idle.length > 0) warnings.push(`${idle.join(', ')}: has no effect without RABBITMQ_URL.`);
  } else if (settings.deadLetterExchange === undefined && written.has('DEAD_LETTER_BINDINGS')) {
    warnings.push('DEAD_LETTER_BINDINGS: has no effect without DEAD_LETTER_EXCHANGE.');
  }
  if (settings.routingDir === undefined && settings.routingGateway === 'on') {
    warnings.push('ROUTING_GATEWAY: has no effect without ROUTING_DIR.');
  }
  if (settings.routingDir === undefined && written.has('NATS_ROUTING_SUBJECT')) {
    warnings.push('NATS_ROUTING_SUBJECT: has no effect without ROUTING_DIR.');
  }
  if (settings.cyodaUrl === undefined) {
    const idle = ['CYODA_TOKEN', 'CYODA_TOKEN_FILE', 'CYODA_TAGS', 'CYODA_LEGAL_ENTITY'].filter(
      (name) => written.has(name),
    );
    if (idle.length > 0) warnings.push(`${idle.join(', ')}: has no effect without CYODA_URL.`);
  }
  return warnings;
}

function entries(data: unknown, path: string, what: string, faults: Fault[]): [string, unknown][] {
  if (data === undefined) return [];
  if (Object.prototype.toString.call(data) === '[object Object]') {
    return Object.entries(data as object);
  }
  faults.push({ path, code: 'INVALID_VALUE', message: `is not an object of ${what}.` });
  return [];
}

function addFaults(error: unknown, path: string, faults: Fault[]): void {
  if (!isConfigError(error)) throw error;
  for (const fault of error.faults) {
    faults.push({ ...fault, path: fault.path === '' ? path : joinPath(path, fault.path) });
  }
}
