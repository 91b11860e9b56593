import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from 'node:http2';
import { Code, ConnectError } from '@connectrpc/connect';
import { batchWrites } from './batched-writes.ts';

/** The TLS options that a caller may set, such as the certificate of an authority. */
export type TlsOptions = Pick<SecureClientSessionOptions, 'ca' | 'cert' | 'key' | 'servername'>;

/** Bytes that the server may send before they are read: more than the 64 KiB of HTTP/2, for large entities. */
const WINDOW_BYTES = 1024 * 1024;
const NO_ERROR = 0;

/**
 * One HTTP/2 connection for one stream, in the form that the transport wants. The transport's own kind shares, verifies
 * and revives connections, and stops listening to the errors of one that was aborted: an error after that would end the
 * process. There are no HTTP/2 pings: Go servers answer them by closing the connection.
 */
export class Connection {
  readonly authority: string;
  readonly #session: ClientHttp2Session;
  readonly #connected: Promise<void>;
  readonly #onUnanswered: () => void;

  /** `onUnanswered`: a stream was closed before any answer, and without an error that the transport would notice. */
  constructor(baseUrl: string, tls: TlsOptions, onUnanswered: () => void = () => undefined) {
    this.#onUnanswered = onUnanswered;
    this.authority = new URL(baseUrl).origin;
    const settings = { enablePush: false, initialWindowSize: WINDOW_BYTES };
    const session = (this.#session = connect(this.authority, { ...tls, settings }));
    this.#connected = new Promise((resolve, reject) => {
      session.on('connect', () => {
        // The event comes a tick after the connection: whoever cut it in between is not told by a crash.
        if (!session.destroyed) session.setLocalWindowSize(WINDOW_BYTES);
        resolve();
      });
      // This listener stays for the life of the session: an error event without a listener would end the process.
      session.on('error', (error: Error) => reject(unavailable(error.message)));
      session.on('close', () => reject(unavailable('the connection was closed')));
    });
    // Nobody may ever call request(): a rejection without a handler would end the process.
    this.#connected.catch(() => undefined);
  }

  async request(
    method: string,
    path: string,
    headers: OutgoingHttpHeaders,
  ): Promise<ClientHttp2Stream> {
    await this.#connected;
    // Its stream would fail before anybody listens to it.
    if (this.#session.destroyed) throw unavailable('the connection was closed');
    const stream = this.#session.request({ ...headers, ':method': method, ':path': path });
    let isAnswered = false;
    stream.once('response', () => (isAnswered = true));
    stream.once('close', () => {
      if (!isAnswered && stream.rstCode === NO_ERROR) this.#onUnanswered();
    });
    return batchWrites(stream);
  }

  /** Part of the transport's interface. It serves to delay pings, and there are none. */
  notifyResponseByteRead(): void {}

  close(): void {
    this.#session.destroy();
  }
}

/** `grpc://host` is plaintext, `grpcs://host` is TLS; the port is 9090 unless given. */
export function baseUrlOf(url: string): string {
  const { protocol, hostname, port } = new URL(url);
  return `${protocol === 'grpcs:' ? 'https' : 'http'}://${hostname}:${port || DEFAULT_PORT}`;
}

const DEFAULT_PORT = 9090;

function unavailable(message: string): ConnectError {
  return new ConnectError(message, Code.Unavailable);
}
