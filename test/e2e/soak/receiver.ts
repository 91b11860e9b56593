/** Who gets what is delivered by HTTP: one server for all origins, since the whole of 127.0.0.0/8 is this machine. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HttpReceipt } from '../service/storm/http-account.ts';

const FLAKY_SHARE = 0.3;
/** Ten thousand origins would keep as many connections open. */
const KEEP_ALIVE_MS = 1000;
const FLAKY_ORIGINS = 4;

export class Receiver implements AsyncDisposable {
  readonly receipts: HttpReceipt[] = [];
  readonly origins = new Set<string>();
  /** Answers 503 to everything that goes to the origin of the outage. */
  isDown = false;
  isFlaky = true;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => this.#receive(request, response));
    this.#server.keepAliveTimeout = KEEP_ALIVE_MS;
  }

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    receiver.#server.listen(0, '0.0.0.0');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  flaky(n: number): string {
    return `http://127.1.0.${1 + (n % FLAKY_ORIGINS)}:${this.port}/flaky`;
  }

  get outage(): string {
    return `http://127.2.0.1:${this.port}/outage`;
  }

  /** One origin for each number up to 65 536. */
  steady(lane: number): string {
    return `http://127.16.${lane >> 8}.${lane & 255}:${this.port}/steady`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const { headers, url } = request;
    const atMs = Date.now();
    request.resume().on('end', () => {
      const fails =
        url === '/outage'
          ? this.isDown
          : url === '/flaky' && this.isFlaky && Math.random() < FLAKY_SHARE;
      const status = fails ? 503 : 200;
      const id = String(headers['idempotency-key']);
      const attempt = Number(headers['x-redrive-attempt']);
      this.receipts.push({ id, attempt, status, atMs });
      this.origins.add(String(headers.host));
      response.writeHead(status).end();
    });
  }
}
