/** One request and its answer on the wire. */
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Connections } from './connections.ts';
import type { Limit } from './limit.ts';

export interface Message {
  url: URL;
  method: string;
  /** A flat list of names and values. */
  headers: readonly string[];
  body: Uint8Array | undefined;
  /** How much of the answer's body is wanted, unless it worked. */
  keepBytes: number;
}

/**
 * `answered`: there is a status, whatever became of the body. `broken`: the connection failed. `ended`: by the
 * limit. `reached`: the other side may have got something.
 */
type Exchanged =
  | { type: 'answered'; status: number; headers: IncomingHttpHeaders; body: Buffer | undefined }
  | { type: 'broken'; error: unknown; reached: boolean; reused: boolean }
  | { type: 'ended'; reached: boolean };

/** Past this much of a body a new connection is cheaper than the rest. */
const DRAIN_BYTES = 65_536;
/** The status is known: so long the rest is waited for. */
const DRAIN_MS = 1000;

export function exchange(
  connections: Connections,
  message: Message,
  limit: Limit,
): Promise<Exchanged> {
  return new Promise((resolve) => {
    new Exchange(connections, message, limit, resolve).send();
  });
}

class Exchange {
  readonly #connections: Connections;
  readonly #message: Message;
  readonly #limit: Limit;
  readonly #resolve: (exchanged: Exchanged) => void;
  #request: ClientRequest | undefined;
  #response: IncomingMessage | undefined;
  #over = false;
  #read = 0;
  #kept: Buffer[] | undefined;

  constructor(
    connections: Connections,
    message: Message,
    limit: Limit,
    resolve: (exchanged: Exchanged) => void,
  ) {
    this.#connections = connections;
    this.#message = message;
    this.#limit = limit;
    this.#resolve = resolve;
  }

  send(): void {
    const { url, method, headers, body } = this.#message;
    const request = this.#connections.request(url, method, headers);
    this.#request = request;
    this.#limit.onEnd = () => this.#finish();
    request.once('response', (response) => this.#receive(response));
    // These stay for good: a connection can fail more than once, and nobody else listens.
    request.on('error', (error) => this.#break(error));
    // An answer that is none, such as a switch of protocols, ends without an error.
    request.on('close', () => {
      if (!this.#over) this.#break(new Error('The connection was closed without an answer.'));
    });
    request.end(body);
  }

  #receive(response: IncomingMessage): void {
    if (this.#over) return;
    this.#response = response;
    this.#limit.shorten(DRAIN_MS);
    response.on('data', (chunk: Buffer) => this.#take(chunk));
    response.once('end', () => this.#finish());
    response.on('error', () => this.#finish());
    response.once('close', () => this.#finish());
  }

  #take(chunk: Buffer): void {
    if (!worked(this.#response?.statusCode) && this.#read < this.#message.keepBytes) {
      (this.#kept ??= []).push(chunk.subarray(0, this.#message.keepBytes - this.#read));
    }
    this.#read += chunk.length;
    if (this.#read > Math.max(DRAIN_BYTES, this.#message.keepBytes)) this.#finish();
  }

  #break(error: unknown): void {
    const request = this.#request;
    if (this.#over || !request) return;
    if (this.#response) return this.#finish();
    const reached = this.#connections.reached(request);
    this.#settle({ type: 'broken', error, reached, reused: request.reusedSocket });
  }

  /** What the other side said stands, also where the rest of it is missing. */
  #finish(): void {
    const response = this.#response;
    const request = this.#request;
    if (this.#over || !request) return;
    if (!response) {
      this.#settle({ type: 'ended', reached: this.#connections.reached(request) });
      return;
    }
    const { statusCode: status = 0 } = response;
    // Node makes the headers when they are first looked at: not where nobody wants them.
    const headers = worked(status) ? {} : response.headers;
    const body = this.#kept && Buffer.concat(this.#kept);
    this.#settle({ type: 'answered', status, headers, body });
  }

  #settle(exchanged: Exchanged): void {
    this.#over = true;
    this.#limit.onEnd = undefined;
    // Only a connection that carried both to their end can carry the next.
    if (!this.#response?.complete || !this.#request?.writableFinished) this.#request?.destroy();
    this.#resolve(exchanged);
  }
}

export function worked(status = 0): boolean {
  return status >= 200 && status < 300;
}
