/** What is wrong with a request, place by place, in the words of the wire. */
import type { TSchema } from 'typebox';
import type { TLocalizedValidationError } from 'typebox/error';
import { didYouMean, nearest } from 'redrive/internal';
import { inServiceWords } from '../../service-words.ts';

/** One thing that is wrong. */
export interface WireFault {
  /** Which part of the request. */
  in: 'body' | 'query' | 'path' | 'header';
  /** A JSON pointer into it: `/items/3/destination`, `/limit`; empty: all of it. */
  path: string;
  code: string;
  message: string;
}

const MAX_FAULTS = 100;

/** What a validator found, as faults of that part. */
export function schemaFaults(
  schema: TSchema,
  errors: readonly TLocalizedValidationError[],
  where: WireFault['in'],
): WireFault[] {
  return withoutAlternatives(errors)
    .flatMap((error) => faultsOf(schema, error))
    .slice(0, MAX_FAULTS)
    .map((fault) => ({ in: where, ...fault }));
}

/** Faults that the engine or core found, whose paths are dotted and in TypeScript's words. */
export function wireFaults(
  faults: readonly { path: string; code: string; message: string }[],
  under: readonly string[] = [],
): WireFault[] {
  return faults.map(({ path, code, message }) => ({
    in: path === 'dedupeKey' ? 'header' : 'body',
    path: wirePath(path, under),
    code,
    message: inServiceWords(message),
  }));
}

/** The parts of a request that a fault of the engine may be about. */
export interface Parts {
  params: unknown;
  query: unknown;
  body?: unknown;
}

/** Which part of a request a fault of the engine is about. The engine knows only the name. */
export function placed(faults: readonly WireFault[], { params, query, body }: Parts): WireFault[] {
  const { filter } = Object(body) as { filter?: unknown };
  const places = [
    { in: 'path', of: params, under: '' },
    { in: 'query', of: query, under: '' },
    { in: 'body', of: filter, under: '/filter' },
  ] as const;
  return faults.map((fault) => {
    if (fault.in !== 'body') return fault;
    const [, first = '', ...rest] = fault.path.split('/');
    const names = [first, ...(synonyms.get(first) ?? [])];
    for (const place of places) {
      const name = names.find((one) => Object.hasOwn(Object(place.of) as object, one));
      if (name === undefined) continue;
      return { ...fault, in: place.in, path: [place.under, name, ...rest].join('/') };
    }
    return fault;
  });
}

/** What queries, paths and filters call by another name than a submission does. */
const synonyms: ReadonlyMap<string, readonly string[]> = new Map([
  ['ordering_key', ['key']],
  ['group', ['fingerprint']],
  ['lane', ['queue']],
]);

const wireNames: ReadonlyMap<string, string> = new Map(
  Object.entries({
    to: 'destination',
    id: 'message_id',
    dedupeKey: 'idempotency-key',
    dueAt: 'due_at',
    expiresAt: 'expires_at',
    orderingKey: 'ordering_key',
    onDead: 'on_dead',
    onConflict: 'on_conflict',
    attempt: 'retry_count',
    maxAttempts: 'max_retries',
    contentType: 'content_type',
    perSecond: 'per_second',
    observeMs: 'observe_ms',
    maxFailures: 'max_failures',
    fingerprint: 'group',
    messageId: 'message_id',
    fromMs: 'from',
    toMs: 'to',
    outageStart: 'outage_start',
    retryAfter: 'retry_after',
  }),
);

/** `context.headers.x-a.b` is `/headers/x-a.b` on the wire. */
export function wirePath(path: string, under: readonly string[] = []): string {
  const own = path.replace(/^context(\.|$)/, '');
  const [first = '', ...rest] = own === '' ? [] : own.split('.');
  const name = under.length > 0 ? first : (wireNames.get(first) ?? first);
  // Names of headers have dots of their own.
  const parts = first === 'headers' && rest.length > 0 ? [name, rest.join('.')] : [name, ...rest];
  return pointer([...under, ...(own === '' ? [] : parts)]);
}

/** A JSON pointer. */
export function pointer(parts: readonly string[]): string {
  return parts.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/**
 * Of a choice between forms nobody wants to read the faults of all of them: those of the one form whose type it has, or
 * else that it is none of them.
 */
function withoutAlternatives(
  errors: readonly TLocalizedValidationError[],
): TLocalizedValidationError[] {
  const dropped = new Set<TLocalizedValidationError>();
  // A number is no text, and of course none of the texts that are allowed.
  const wrongTypes = new Set(errors.filter(({ keyword }) => keyword === 'type').map(placeOf));
  for (const error of errors) {
    if (error.keyword === 'enum' && wrongTypes.has(placeOf(error))) dropped.add(error);
  }
  for (const choice of errors) {
    if (choice.keyword !== 'anyOf') continue;
    const prefix = `${choice.schemaPath}/anyOf/`;
    const nested = errors.filter(({ schemaPath }) => schemaPath.startsWith(prefix));
    const formOf = ({ schemaPath }: TLocalizedValidationError) =>
      schemaPath.slice(prefix.length).split('/')[0]!;
    const forms = new Set(nested.map(formOf));
    for (const error of nested) {
      const isWhole = error.instancePath === choice.instancePath;
      if (isWhole && (error.keyword === 'type' || error.keyword === 'const')) {
        forms.delete(formOf(error));
      }
    }
    if (forms.size === 1) dropped.add(choice);
    for (const error of nested) {
      if (forms.size !== 1 || !forms.has(formOf(error))) dropped.add(error);
    }
  }
  return errors.filter((error) => !dropped.has(error));
}

function placeOf({ instancePath, schemaPath }: TLocalizedValidationError): string {
  return `${instancePath} ${schemaPath}`;
}

function faultsOf(schema: TSchema, error: TLocalizedValidationError): Omit<WireFault, 'in'>[] {
  const { instancePath: path } = error;
  // Each of them is there by itself too, as a value that nothing may be.
  if (error.keyword === 'additionalProperties') return [];
  if (error.keyword === 'boolean') {
    const near = meantBy(path.slice(path.lastIndexOf('/') + 1), namesAt(schema, error));
    const message = `There is no such field.${didYouMean(near)}`;
    return [{ path, code: 'UNKNOWN_FIELD', message }];
  }
  if (error.keyword === 'required') {
    return error.params.requiredProperties.map((name) => missing(path, name));
  }
  if (error.keyword === 'dependentRequired') {
    const { property, dependencies } = error.params;
    return dependencies.map((name) => missing(path, name, `'${property}' needs it.`));
  }
  const message = wantedBy(error) ?? describedAt(schema, error) ?? `It ${error.message}.`;
  return [{ path, code: 'INVALID_VALUE', message }];
}

/** The field that was probably meant: by another name for the same thing, or by a slip. */
function meantBy(name: string, names: readonly string[]): string | undefined {
  const alias = fieldAliases.get(name.toLowerCase().replaceAll(/[_-]/g, ''));
  return alias !== undefined && names.includes(alias) ? alias : nearest(name, names);
}

/** What the same thing is called elsewhere: in the engine, on the command line, in other queues. Lower case, bare. */
const fieldAliases: ReadonlyMap<string, string> = new Map(
  Object.entries({
    in: 'delay',
    delayms: 'delay',
    delayseconds: 'delay',
    wait: 'delay',
    after: 'delay',
    startafter: 'due_at',
    runat: 'due_at',
    dueat: 'due_at',
    scheduledat: 'due_at',
    scheduledfor: 'due_at',
    sendat: 'due_at',
    notbefore: 'due_at',
    eta: 'due_at',
    to: 'destination',
    url: 'destination',
    queue: 'destination',
    topic: 'destination',
    body: 'payload',
    data: 'payload',
    message: 'payload',
    id: 'message_id',
    taskid: 'message_id',
    maxattempts: 'max_retries',
    retries: 'max_retries',
    attempts: 'retry_count',
    attempt: 'retry_count',
    error: 'error_reason',
    reason: 'error_reason',
  }),
);

/** The value that is wanted, in words; undefined: only the schema can say. */
function wantedBy({ keyword, params }: TLocalizedValidationError): string | undefined {
  const { type, allowedValues, allowedValue, limit, format } = params as {
    type?: string | string[];
    allowedValues?: unknown[];
    allowedValue?: unknown;
    limit?: number;
    format?: string;
  };
  const many = Number(limit);
  const words: Readonly<Record<string, () => string>> = {
    type: () => `${typeWords(type ?? [])} is needed.`,
    enum: () => `One of ${allowedValues?.join(', ')} is needed.`,
    const: () => `It can only be ${JSON.stringify(allowedValue)}.`,
    minimum: () => `It has to be at least ${limit}.`,
    exclusiveMinimum: () => `It has to be more than ${limit}.`,
    maximum: () => `It can be at most ${limit}.`,
    minLength: () => `At least ${count(many, 'character')} needed.`,
    maxLength: () => `At most ${count(many, 'character')} allowed.`,
    minItems: () => `At least ${count(many, 'entry', 'entries')} needed.`,
    maxItems: () => `At most ${count(many, 'entry', 'entries')} allowed.`,
    minProperties: () => `At least ${count(many, 'field')} needed.`,
    pattern: () => 'It has characters that are not possible here.',
    format: () => formatWords.get(format ?? '') ?? `A ${format} is needed.`,
  };
  return words[keyword]?.();
}

function missing(path: string, name: string, why = ''): Omit<WireFault, 'in'> {
  const message = `It is missing.${why ? ` ${why}` : ''}`;
  return { path: path + pointer([name]), code: 'MISSING_FIELD', message };
}

const formatWords = new Map([
  ['uuid', 'A UUID is needed.'],
  ['date-time', 'A time with its zone is needed, such as 2030-01-31T12:00:00Z.'],
]);

function typeWords(type: string | readonly string[]): string {
  const words: Record<string, string> = {
    string: 'A text',
    integer: 'A whole number',
    number: 'A number',
    boolean: 'true or false',
    object: 'An object',
    array: 'A list',
    null: 'null',
  };
  return [type]
    .flat()
    .map((one) => words[one] ?? one)
    .join(' or ');
}

function count(many: number, one: string, several = `${one}s`): string {
  return many === 1 ? `1 ${one} is` : `${many} ${several} are`;
}

/** The part of a schema that an error is about. */
function schemaAt(schema: TSchema, path: string): Record<string, unknown> | undefined {
  let part: unknown = schema;
  for (const step of path.split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    part = (Object(part) as Record<string, unknown>)[key];
  }
  return Object(part) as Record<string, unknown>;
}

function namesAt(schema: TSchema, { schemaPath }: TLocalizedValidationError): string[] {
  const owner = schemaAt(schema, schemaPath.replace(/\/additionalProperties$/, ''));
  return Object.keys(Object(owner?.['properties']) as object);
}

/** What the schema itself says is wanted there. */
function describedAt(schema: TSchema, error: TLocalizedValidationError): string | undefined {
  const description = schemaAt(schema, error.schemaPath)?.['description'];
  return typeof description === 'string' ? `What is needed: ${description}` : undefined;
}
