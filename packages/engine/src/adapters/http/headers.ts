/** The headers of a request: ours, the credentials', and those of the task that are not the connection's business. */
import type { TaskFault } from '../../errors.ts';
import type { Run } from '../../ports/delivery.ts';
import { idempotencyKeyOf, type Task, type TaskContext } from '../../model/task.ts';

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET', 'HEAD'];
const MAX_HEADERS = 64;
const MAX_NAME = 256;
const MAX_CHARACTERS = 16_384;

/** What is wrong with the method, the headers and the content type of a task. */
export function checkContext(context: TaskContext | undefined): TaskFault[] {
  if (!context) return [];
  const faults: TaskFault[] = [];
  const { headers = {}, contentType, secret } = context;
  if (!METHODS.includes(methodOf(context))) {
    fault('method', `is not one of ${METHODS.join(', ')}.`);
  }
  if (contentType !== undefined && !isHeaderValue(contentType)) fault('contentType', badValue);
  if (secret !== undefined && !isSecretName(secret)) {
    fault('secret', `is not a name of 1 to ${MAX_NAME} printable characters.`);
  }
  const entries = Object.entries(headers);
  if (entries.length > MAX_HEADERS) {
    fault('headers', `has ${entries.length} headers, ${MAX_HEADERS} at most.`);
    return faults;
  }
  let characters = 0;
  for (const [name, value] of entries) {
    const wrong = headerFault(name, value);
    if (wrong) fault(`headers.${name.slice(0, MAX_NAME)}`, wrong);
    else if (secretive.has(name.toLowerCase())) {
      fault(`headers.${name}`, 'holds credentials, which would be stored. Name a `secret`.');
    }
    characters += name.length + String(value).length;
  }
  if (characters > MAX_CHARACTERS) {
    fault('headers', `has ${characters} characters, ${MAX_CHARACTERS} at most.`);
  }
  return faults;

  function fault(path: string, message: string): void {
    faults.push({ path: `context.${path}`, code: 'INVALID_TASK', message });
  }
}

/** What is wrong with one header; undefined: nothing. Its value is never shown: it may be a secret. */
export function headerFault(name: string, value: unknown): string | undefined {
  if (name.length > MAX_NAME || !token.test(name)) return 'is not the name of a header.';
  return isHeaderValue(value) ? undefined : badValue;
}

/** Whether nobody but the connection may set it. */
export function isConnectionHeader(name: string): boolean {
  return connection.has(name.toLowerCase());
}

/** In capitals; POST unless given. */
export function methodOf(context: TaskContext | undefined): string {
  return context?.method === undefined ? 'POST' : String(context.method).toUpperCase();
}

/** These have no body: the payload stays here. */
export function hasBody(method: string): boolean {
  return method !== 'GET' && method !== 'HEAD';
}

/** All of a request's headers as a flat list of names and values, of a context without faults. */
export function requestHeaders(
  task: Task,
  run: Run,
  url: URL,
  credentials: readonly (readonly [string, string])[] = [],
): string[] {
  const { context, messageId, payload } = task;
  const list = [
    'host',
    url.host,
    // What comes back is kept as text: nobody unpacks it.
    'accept-encoding',
    'identity',
    'idempotency-key',
    idempotencyKeyOf(task),
    'x-redrive-message-id',
    messageId,
    'x-redrive-attempt',
    String(run.attempt),
    'x-redrive-max-attempts',
    String(run.maxAttempts),
  ];
  if (hasBody(methodOf(context))) list.push('content-length', String(payload.byteLength));
  if (context?.contentType !== undefined) list.push('content-type', context.contentType);
  // A trace that is not one would only be ignored there.
  if (traceparent.test(context?.traceparent ?? '')) {
    list.push('traceparent', context?.traceparent ?? '');
  }
  const own = context?.headers ? Object.entries(context.headers) : [];
  addMissing(list, [...credentials, ...own, ['user-agent', 'redrive']]);
  return list;
}

/** Of each name the first stays: credentials cannot be replaced by a task's headers, nor ours by either. */
function addMissing(list: string[], headers: readonly (readonly [string, string])[]): void {
  const seen = new Set(list.filter((_, i) => i % 2 === 0));
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    if (seen.has(lower) || connection.has(lower)) continue;
    seen.add(lower);
    list.push(name, value);
  }
}

const token = /^[\w!#$%&'*+.^`|~-]+$/;
const traceparent = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}$/;
const badValue = 'is not a text that a header can hold: printable ASCII, without line breaks.';

function isHeaderValue(value: unknown): value is string {
  return (
    typeof value === 'string' && /^[\t\x20-\x7e]*$/.test(value) && value.length <= MAX_CHARACTERS
  );
}

function isSecretName(name: unknown): boolean {
  return isHeaderValue(name) && name !== '' && name.length <= MAX_NAME;
}

/** They belong to one connection: a task may have taken them from a request it came by, and they end here. */
const connection = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const secretive = new Set(['authorization', 'cookie', 'proxy-authorization']);
