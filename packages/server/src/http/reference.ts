/** The reference page of the API, written from its own document. */
import { createEngine } from '@redrive/engine';
import { memory } from '@redrive/engine/memory';
import pino from 'pino';
import { memoryIdempotency } from 'redrive';
import { systemClock } from 'redrive/internal';
import { createCriteria } from '../criteria/index.ts';
import { RouteCounts } from '../observe/metrics/route-counts.ts';
import { createRouting } from '../routing/index.ts';
import { CriterionCounts } from '../observe/metrics/criterion-counts.ts';
import { createMetricSet } from '../observe/metrics/registry.ts';
import { readSettings } from '../settings/read.ts';
import { buildApp } from './app.ts';
import { KEPT_FOR, ofKeys } from './idempotency.ts';
import { documentOf } from './openapi.ts';
import { statuses } from './problem.ts';
import { always, ofBodies } from './routes/route.ts';

/** All of docs/reference/http-api.md. */
export async function httpReference(): Promise<string> {
  return page((await apiDocument()) as Document);
}

interface Document {
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

interface Operation {
  summary: string;
  description?: string;
  tags: string[];
  'x-role': string;
  parameters?: {
    name: string;
    in: string;
    required: boolean;
    description?: string;
    schema: Schema;
  }[];
  requestBody?: { required: boolean; content: Record<string, { schema: Schema } & Examples> };
  responses: Record<string, { description: string; content?: Record<string, { schema: Schema }> }>;
}

interface Examples {
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: string[];
  const?: unknown;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
}

/** An app that is never asked anything: only its document is wanted. */
async function apiDocument(): Promise<object> {
  const read = await readSettings({ env: {}, cwd: import.meta.dirname });
  if (!read.ok) throw new Error(`The defaults have faults: ${JSON.stringify(read.faults)}`);
  const log = pino({ level: 'silent' });
  const app = await buildApp({
    settings: read.settings,
    instance: 'reference',
    engine: createEngine({ store: memory() }),
    clock: systemClock,
    log,
    feed: { read: () => () => undefined },
    metrics: { contentType: 'text/plain', text: async () => '', answered: () => undefined },
    health: { ready: async () => ({ ready: false, checks: [] }) },
    routing: await createRouting({
      settings: read.settings,
      log,
      clock: systemClock,
      counts: new RouteCounts(createMetricSet()),
    }),
    idempotency: memoryIdempotency(),
    criteria: createCriteria({
      settings: read.settings,
      instance: 'reference',
      clock: systemClock,
      log,
      counts: new CriterionCounts(createMetricSet()),
    }),
  });
  const document = documentOf(app);
  await app.close();
  return document;
}

function page(document: Document): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const sections = document.tags.map(({ name, description }) =>
    [
      `## ${capital(name)}`,
      description,
      ...operations
        .filter(({ operation }) => operation.tags.includes(name))
        .map(({ path, method, operation }) => section(path, method, operation)),
    ].join('\n\n'),
  );
  const schemas = Object.entries(document.components.schemas).map(([name, schema]) =>
    [`### ${name}`, schema.description ?? '', table(schema)].filter(Boolean).join('\n\n'),
  );
  return `${[intro, ...sections, '## Schemas', ...schemas, problemTable()].join('\n\n')}\n`;
}

const intro = `# Reference: HTTP API

Written from the OpenAPI 3.1 document, which every running service has at \`/openapi.json\`. Do not edit: run \`npm run generate\`.

\`\`\`sh
curl -X POST http://127.0.0.1:8086/api/v1/retries -H 'content-type: application/json' \\
  -d '{"destination": "http://127.0.0.1:9000/orders", "payload": {"order": 7}}'
\`\`\`

- **Names** are \`snake_case\`. A policy is the one exception: it is written as in TypeScript ([policy](policy.md)).
- **Times** are ISO 8601 in UTC; what is given needs its zone.
- **Lists** are \`{items, next_cursor}\`. \`?cursor=\` goes on where the last page ended; null: that was all. A page may have few items and still go on.
- **Payloads** go in and out as JSON (\`payload\`) or as bytes (\`payload_base64\`). JSON is written anew, so spaces may change; integers of any length keep
  every digit. What has to arrive byte for byte goes in as \`payload_base64\`.
- **Problems** are \`application/problem+json\` ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)) with a \`code\`, a \`detail\` that says what to do, and in \`errors\` everything that is
  wrong with the request, each with the JSON pointer of its place. All codes are in the [reference of errors](errors.md). Whatever one asks for may be answered by
  ${always.map((code) => `\`${code}\``).join(', ')}; whatever has a body also by ${ofBodies.map((code) => `\`${code}\``).join(', ')}. The tables below name what is beside these.
- **Idempotency-Key**: every POST that changes something takes the header (\`POST /api/v1/retries\` in its own way: there the key makes the \`message_id\`). The first request with a key is processed, and its response
  is kept for ${KEPT_FOR}; each later one with the same key, token, URL and body gets the same response, with \`idempotency-replayed: true\`. Responses with 5xx, 408, 425 and 429 are not kept: the
  same key may be sent again. A key may be answered by ${ofKeys.map((code) => `\`${code}\``).join(', ')} too. [More](../guides/idempotency-http.md#the-service).
- **Who may ask**: with \`REDRIVE_TOKENS\`, who sends \`Authorization: Bearer\` and a token whose role is enough: a reader looks, an operator acts, an admin erases. Without,
  everybody on this machine, but no web page of another origin, and no name but \`localhost\`, \`127.0.0.0/8\` and \`[::1]\`. The name of the token, or the header
  \`x-redrive-operator\` where there are none, stands in the audit trail.
- **Limits**: bodies of \`REDRIVE_MAX_REQUEST_BYTES\` (413), \`REDRIVE_RATE_LIMIT\` requests per second and client (429 with \`Retry-After\`), \`REDRIVE_REQUEST_TIMEOUT_MS\` for one
  request (408, 503). While the store is away: 503 with \`Retry-After\`.`;

const common = new Set<string>([...always, ...ofBodies, ...ofKeys]);

function section(path: string, method: string, operation: Operation): string {
  const { summary, description, parameters = [], requestBody, responses } = operation;
  const role = operation['x-role'];
  const shown = parameters.map(({ name, in: where, required, description: text, schema }) => {
    const words = [text ?? schema.description, limits(schema)].filter(Boolean).join(' ');
    return `| \`${name}\` | ${where}${required ? ', needed' : ''} | ${typeOf(schema)} | ${cell(words)} |`;
  });
  return [
    `### ${method.toUpperCase()} ${path}`,
    `${summary}.${description === undefined ? '' : ` ${description}`} Role: ${role === 'open' ? 'none' : role}.`,
    ...(shown.length > 0
      ? [['| name | in | type | |', '|---|---|---|---|', ...shown].join('\n')]
      : []),
    ...(requestBody ? [bodyOf(requestBody)] : []),
    ['| status | answer |', '|---|---|', ...Object.entries(responses).flatMap(answerRow)].join(
      '\n',
    ),
  ].join('\n\n');
}

function bodyOf({ required, content }: NonNullable<Operation['requestBody']>): string {
  const media = content['application/json'];
  if (!media) return '';
  const examples = [
    ...(media.example === undefined ? [] : [media.example]),
    ...Object.values(media.examples ?? {}).map(({ value }) => value),
  ];
  const isEmpty = media.schema.properties && Object.keys(media.schema.properties).length === 0;
  const fields = media.schema.properties ? table(media.schema) : `Body: ${typeOf(media.schema)}.`;
  return [
    isEmpty ? 'No body, or an empty object.' : fields,
    ...(required || isEmpty ? [] : ['The body may be left out.']),
    ...(examples.length > 0
      ? [`\`\`\`json\n${examples.map((one) => JSON.stringify(one)).join('\n')}\n\`\`\``]
      : []),
  ].join('\n\n');
}

function answerRow([status, { description, content = {} }]: [
  string,
  Operation['responses'][string],
]): string[] {
  const [[type, { schema }] = ['', { schema: {} }]] = Object.entries(content);
  if (type === 'application/problem+json') {
    const own = description.split(', ').filter((code) => !common.has(code.replaceAll('`', '')));
    return own.length > 0 ? [`| ${status} | ${own.join(', ')} |`] : [];
  }
  const what = type === 'application/json' ? ` ${typeOf(schema)}` : ` \`${type}\``;
  return [`| ${status} | ${cell(description)}${what} |`];
}

/** The fields of an object. */
function table({ properties = {}, required = [] }: Schema): string {
  const rows = Object.entries(properties).map(([name, schema]) => {
    const words = [schema.description, limits(schema)].filter(Boolean).join(' ');
    const isNeeded = required.includes(name) ? 'yes' : '';
    return `| \`${name}\` | ${typeOf(schema)} | ${isNeeded} | ${cell(words)} |`;
  });
  return ['| field | type | always | |', '|---|---|---|---|', ...rows].join('\n');
}

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1)!;
    return `[${name}](#${name.toLowerCase()})`;
  }
  const forms = schema.oneOf ?? schema.anyOf;
  if (forms && !schema.properties) return forms.map(typeOf).join(' or ');
  if (schema.enum) return schema.enum.map((word) => `\`${word}\``).join(', ');
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.items) return `list of ${typeOf(schema.items)}`;
  const { items, next_cursor } = schema.properties ?? {};
  if (items?.items && next_cursor) return `page of ${typeOf(items.items)}`;
  if (schema.properties) {
    return `{ ${Object.keys(schema.properties)
      .map((name) => `\`${name}\``)
      .join(', ')} }`;
  }
  return [schema.type ?? 'any JSON'].flat().join(' or ');
}

function limits({ minimum, maximum, maxLength, default: usual }: Schema): string {
  const range =
    minimum === undefined || maximum === undefined || maximum > 1e12
      ? ''
      : `From ${minimum} to ${maximum}.`;
  const length = maxLength === undefined ? '' : `At most ${maxLength} characters.`;
  const unless = usual === undefined ? '' : `Unless given: \`${JSON.stringify(usual)}\`.`;
  return [range, length, unless].filter(Boolean).join(' ');
}

function problemTable(): string {
  const rows = Object.entries(statuses)
    .sort(([a, x], [b, y]) => x - y || a.localeCompare(b))
    .map(([code, status]) => `| ${status} | \`${code}\` |`);
  return [
    '## Problems',
    'What each means, and what to do: [errors](errors.md).',
    ['| status | code |', '|---|---|', ...rows].join('\n'),
  ].join('\n\n');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
