/** Which headers pass through the gateway. Lists are flat, names and values in turn, as Node reads and writes them. */

/** They belong to one connection, or say what only the sender of a message can know. */
const hopByHop = new Set([
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The headers in which clients send keys. Here they carry a token of Redrive, which no provider may see. */
export const tokenHeaders = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'] as const;

const OWN = 'x-redrive-';

/** Cookies are between a browser and one host. The gateway is neither the one nor the other. */
const notForwarded = new Set<string>([...hopByHop, ...tokenHeaders, 'content-length', 'cookie']);

/** These would be rules for the gateway's own host, or are framing that Node writes by itself. */
const notReturned = new Set([
  ...hopByHop,
  'alt-svc',
  'clear-site-data',
  'set-cookie',
  'set-cookie2',
  'strict-transport-security',
]);

interface ForwardedRequest {
  rawHeaders: readonly string[];
  /** The `host` of the provider. */
  host: string;
  /** The provider's own headers: they replace those of the client. Names are lower case. */
  own: ReadonlyMap<string, string>;
  /** Of the body; undefined: there is no body and no need to say so. `chunked`: nobody knows yet. */
  length: number | 'chunked' | undefined;
}

export function requestHeaders({ rawHeaders, host, own, length }: ForwardedRequest): string[] {
  const headers = ['host', host];
  const named = namedByConnection(rawHeaders);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    const lower = name.toLowerCase();
    if (notForwarded.has(lower) || lower.startsWith(OWN)) continue;
    if (named?.has(lower) || own.has(lower)) continue;
    headers.push(name, rawHeaders[i + 1]!);
  }
  for (const [name, value] of own) headers.push(name, value);
  if (length === 'chunked') headers.push('transfer-encoding', 'chunked');
  else if (length !== undefined) headers.push('content-length', String(length));
  return headers;
}

/** What a header may consist of, by Node's own rule for writing one. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;

/** Undefined: the provider sent headers that cannot be written. */
export function answerHeaders(rawHeaders: readonly string[], status: number): string[] | undefined {
  const headers: string[] = [];
  const named = namedByConnection(rawHeaders);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    const value = rawHeaders[i + 1]!;
    const lower = name.toLowerCase();
    if (notReturned.has(lower) || lower.startsWith(OWN) || named?.has(lower)) continue;
    if (lower === 'content-length' && status === 204) continue;
    if (!NAME.test(name) || !VALUE.test(value)) return undefined;
    headers.push(name, value);
  }
  return headers;
}

/** The names that `connection` lists: such headers end here too. `content-length` and the like are never among them. */
function namedByConnection(rawHeaders: readonly string[]): Set<string> | undefined {
  let named: Set<string> | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    for (const each of rawHeaders[i + 1]!.split(',')) {
      const lower = each.trim().toLowerCase();
      if (lower === '' || lower === 'keep-alive' || lower === 'close') continue;
      if (!needed.has(lower)) (named ??= new Set()).add(lower);
    }
  }
  return named;
}

/** A client must not be able to take these away by listing them: the body would be read otherwise, or repeated. */
const needed = new Set(['content-length', 'content-type', 'content-encoding', 'idempotency-key']);
