/**
 * A server that asks a member as fast as the member answers. Requests are bytes that are made once and answers are only
 * counted: the server must not be what is measured.
 */
import { once } from 'node:events';
import { createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { encodeEvent, frame } from '../../test/services/cyoda/wire.ts';
import { entityOf } from './entities.ts';

const HEAD = 5;
const KEEP_ALIVE_MS = 10_000;
const JOIN_MS = 60_000;
const source = 'urn:cyoda:bench';

export class GrpcLoad implements AsyncDisposable {
  readonly url: string;
  readonly #server: Http2Server;
  readonly #joined = Promise.withResolvers<ServerHttp2Stream>();
  #isJoined = false;
  #left = 0;
  #head: Buffer = Buffer.alloc(0);
  #onAnswers: (count: number) => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;

  private constructor(server: Http2Server) {
    this.#server = server;
    this.url = `grpc://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('stream', (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
      stream.on('error', () => undefined);
      stream.on('data', (chunk: Buffer) => this.#read(stream, chunk));
      const timer = setInterval(() => stream.write(keepAlive), KEEP_ALIVE_MS).unref();
      stream.on('close', () => {
        clearInterval(timer);
        this.#fail(new Error('the member is gone'));
      });
    });
  }

  static async start(): Promise<GrpcLoad> {
    const server = createServer({ settings: { initialWindowSize: 1024 * 1024 } });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const load = new GrpcLoad(server);
    setTimeout(() => load.#joined.reject(new Error('no member has joined')), JOIN_MS).unref();
    return load;
  }

  /** Asks with so many requests open all the time. */
  async ask(forMs: number, open: number): Promise<{ answers: number; tookMs: number }> {
    const stream = await this.#joined.promise;
    const startMs = performance.now();
    let answers = 0;
    let waiting = 0;
    await new Promise<void>((resolve, reject) => {
      this.#fail = reject;
      const send = (count: number) => {
        waiting += count;
        stream.write(count === 1 ? request : Buffer.concat(Array<Buffer>(count).fill(request)));
      };
      this.#onAnswers = (count) => {
        answers += count;
        waiting -= count;
        if (performance.now() - startMs < forMs) send(count);
        else if (waiting <= 0) resolve();
      };
      send(open);
    });
    this.#onAnswers = () => undefined;
    this.#fail = () => undefined;
    return { answers, tookMs: performance.now() - startMs };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const stream = await this.#joined.promise;
    stream.session?.destroy();
    this.#server.close();
  }

  /** Counts messages by their lengths alone. */
  #read(stream: ServerHttp2Stream, chunk: Buffer): void {
    let bytes = this.#head.length > 0 ? Buffer.concat([this.#head, chunk]) : chunk;
    this.#head = Buffer.alloc(0);
    let count = 0;
    while (bytes.length > 0) {
      if (this.#left === 0) {
        if (bytes.length < HEAD) {
          this.#head = bytes;
          break;
        }
        this.#left = bytes.readUInt32BE(1);
        bytes = bytes.subarray(HEAD);
      }
      const taken = Math.min(this.#left, bytes.length);
      this.#left -= taken;
      bytes = bytes.subarray(taken);
      if (this.#left === 0) count += 1;
    }
    if (this.#isJoined) this.#onAnswers(count);
    else if (count > 0) {
      this.#isJoined = true;
      stream.write(greet);
      this.#joined.resolve(stream);
    }
  }
}

function bytesOf(type: string, body: object): Buffer {
  const text = JSON.stringify(body);
  const event = { id: 'bench', source, specVersion: '1.0', type, text };
  return frame(encodeEvent(event, { authtype: 'user', authid: 'someone' }));
}

const memberId = '00000000-0000-4000-8000-000000000000';
const keepAlive = bytesOf('CalculationMemberKeepAliveEvent', { id: memberId, memberId });
const greet = bytesOf('CalculationMemberGreetEvent', {
  id: memberId,
  memberId,
  joinedLegalEntityId: 'acme',
  success: true,
});

/** What the server sends of a transition with a criterion. */
export const requestBody = {
  id: memberId,
  requestId: '11111111-1111-4111-8111-111111111111',
  entityId: '22222222-2222-4222-8222-222222222222',
  criteriaId: 'isRetryDelayElapsed',
  criteriaName: 'isRetryDelayElapsed',
  target: 'TRANSITION',
  workflow: { id: 'payments', name: 'payments' },
  transition: { id: 'retry', name: 'retry' },
  transactionId: '33333333-3333-4333-8333-333333333333',
  parameters: 'retry-delay-check',
  payload: { type: 'JSON', data: entityOf(7), meta: { state: 'RETRY_PENDING' } },
};
const request = bytesOf('EntityCriteriaCalculationRequest', requestBody);
