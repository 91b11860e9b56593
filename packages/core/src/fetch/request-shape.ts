import { dispose } from '../run/dispose.ts';

export type FetchInput = Parameters<typeof fetch>[0];
export type FetchInit = NonNullable<Parameters<typeof fetch>[1]>;

/** What decides whether a request may be sent again. */
interface RequestShape {
  method: string;
  url: string;
  /** The caller's own signal. */
  signal: AbortSignal | undefined;
  /** What to hand to `fetch` for one attempt. */
  input: () => FetchInput;
  /** To be called at the end: a body of which copies were sent is not kept. */
  release: () => void;
  /** `init` with headers that can be read more than once. */
  init: FetchInit;
  /** The body is a stream, which can be read once. */
  isOneShot: boolean;
  /** Sending it twice does the same as sending it once. */
  isIdempotent: boolean;
}

/** RFC 9110, section 9.2.2. */
const idempotentMethods: readonly string[] = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'];

export function shapeOf(input: FetchInput, init: FetchInit = {}): RequestShape {
  const request = isRequest(input) ? input : undefined;
  // As in `fetch`, the headers of `init` replace those of the request. An iterator of headers can be read only once.
  const headers = init.headers === undefined ? request?.headers : new Headers(init.headers);
  const method = (init.method ?? request?.method ?? 'GET').toUpperCase();
  // A request keeps its body, and each attempt sends a copy.
  const isCopied = request?.body != null && init.body === undefined;
  return {
    method,
    url: typeof input === 'string' ? input : 'href' in input ? input.href : input.url,
    signal: init.signal ?? request?.signal,
    input: () => (isCopied ? request.clone() : input),
    release: () => {
      if (isCopied) dispose(request);
    },
    init: headers ? { ...init, headers } : init,
    isOneShot: isStream(init.body),
    isIdempotent: idempotentMethods.includes(method) || (headers?.has('idempotency-key') ?? false),
  };
}

/** By its shape: a polyfill's `Request` is none of the global class. */
function isRequest(input: FetchInput): input is Request {
  return typeof input === 'object' && 'method' in input && 'clone' in input;
}

/** A stream of the web or of Node, or any other source that is read piece by piece. */
function isStream(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false;
  return 'getReader' in body || Symbol.asyncIterator in body;
}
