/** Hands the requests of the gateway to it before the API sees them. The API's limits of time are none for an LLM. */
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Problem } from '../http/problem.ts';
import type { Gateway } from './gateway.ts';
import { isGatewayUrl } from './request-target.ts';

interface DoorOptions {
  /** How long a request to the API may take to come in. Node has one limit for all requests of a server. */
  requestTimeoutMs: number;
  /** Why a request on this connection cannot be served. */
  refusal: (socket: Socket) => Problem | undefined;
}

/** Call it before others listen to the server's requests. */
export function openDoor(
  server: Server,
  gateway: Pick<Gateway, 'handle'>,
  { requestTimeoutMs, refusal }: DoorOptions,
): void {
  const api = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  server.requestTimeout = 0;
  const arrivals = new Arrivals(server, requestTimeoutMs);
  server.on('request', (request, response) => {
    if (isGatewayUrl(request.url)) {
      gateway.handle(request, response, refusal(request.socket));
      return;
    }
    arrivals.watch(request);
    for (const listener of api) listener(request, response);
  });
}

/** Ends requests that do not come in whole in time, as Node would. One timer for all of them. */
class Arrivals {
  readonly #server: Server;
  readonly #limitMs: number;
  /** The oldest first, and until when each may take. */
  readonly #coming = new Map<IncomingMessage, number>();
  #isWatching = false;

  constructor(server: Server, limitMs: number) {
    this.#server = server;
    this.#limitMs = limitMs;
  }

  watch(request: IncomingMessage): void {
    const { headers } = request;
    const hasBody =
      headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
    if (!hasBody) return;
    this.#coming.set(request, performance.now() + this.#limitMs);
    request.once('close', () => this.#coming.delete(request));
    if (!this.#isWatching) this.#lookIn(this.#limitMs);
  }

  #lookIn(ms: number): void {
    this.#isWatching = true;
    setTimeout(() => this.#look(), ms).unref();
  }

  #look(): void {
    this.#isWatching = false;
    const nowMs = performance.now();
    for (const [request, untilMs] of this.#coming) {
      if (untilMs > nowMs) return this.#lookIn(Math.ceil(untilMs - nowMs));
      this.#coming.delete(request);
      if (request.complete) continue;
      const error = Object.assign(new Error('The request took too long to come in.'), {
        code: 'ERR_HTTP_REQUEST_TIMEOUT',
      });
      this.#server.emit('clientError', error, request.socket);
    }
  }
}
