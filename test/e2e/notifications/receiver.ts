/** Whoever the retries are delivered to: notes each delivery with its worker, its attempt and its time. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface Delivered {
  /** The path that it was posted to. */
  worker: string;
  id: string;
  deviceId: string;
  attempt: number;
  atMs: number;
}

export class Receiver implements AsyncDisposable {
  readonly url: string;
  readonly delivered: Delivered[] = [];
  readonly #server: Server;
  #heard: () => void = () => undefined;

  private constructor(server: Server, answer: (one: Delivered) => number | Promise<number>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    server.on('request', (request, response) => {
      void text(request).then(async (body) => {
        const { notification_id: id, device_id, attempt_number } = JSON.parse(body) as Wire;
        const worker = request.url!.slice(1);
        const atMs = performance.now();
        const one = { worker, id, deviceId: device_id, attempt: attempt_number, atMs };
        this.delivered.push(one);
        this.#heard();
        response.writeHead(await answer(one)).end();
      });
    });
  }

  /** `answer`: the status. */
  static async listen(answer: (one: Delivered) => number | Promise<number>): Promise<Receiver> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Receiver(server, answer);
  }

  /** Resolves with the next so many deliveries, or when none came for a while. */
  async more(count: number, idleMs = 3000): Promise<void> {
    const end = this.delivered.length + count;
    while (this.delivered.length < end) {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const idle = setTimeout(() => resolve(false), idleMs);
      this.#heard = () => resolve(true);
      const isHeard = await promise;
      clearTimeout(idle);
      if (!isHeard) return;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

interface Wire {
  notification_id: string;
  device_id: string;
  attempt_number: number;
}
