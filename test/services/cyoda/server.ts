/**
 * A Cyoda server for tests: the protocol of calculation members over real HTTP/2, without the workflows behind it. It
 * holds members to the protocol, and can misbehave at any moment.
 */
import { once } from 'node:events';
import {
  createSecureServer,
  createServer,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type Body, bodyOf, joinFaults } from './checks.ts';
import { endCall, MemberStream } from './member-stream.ts';
import { decodeEvent, encodeEvent, frame, Unframer } from './wire.ts';

export { type Body } from './checks.ts';
export { type MemberStream, type RequestOptions, StreamGone } from './member-stream.ts';

export interface CyodaServerOptions {
  /** The token that members have to show; it may change. Without it any goes. */
  token?: string;
  legalEntity?: string;
  tls?: { key: string; cert: string };
  /** The greeting's fields that differ. `none`: no greeting at all. */
  greet?: Body | 'none';
  port?: number;
}

const PATH = '/org.cyoda.cloud.api.grpc.CloudEventsService/startStreaming';
const UNAUTHENTICATED = 16;
const UNIMPLEMENTED = 12;
const INVALID_ARGUMENT = 3;

export class CyodaServer implements AsyncDisposable {
  /** Where a member joins. */
  readonly url: string;
  /** Whatever members did that the protocol does not allow. */
  readonly faults: string[] = [];
  /** May be changed while it runs. */
  readonly options: CyodaServerOptions;
  /** Tokens that were shown, one for each join. */
  readonly shownTokens: (string | undefined)[] = [];
  /** HTTP/2 pings that came. */
  pings = 0;
  readonly #server: Http2Server;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #members = new Set<MemberStream>();
  readonly #joins: MemberStream[] = [];
  readonly #waiters: ((member: MemberStream) => void)[] = [];

  private constructor(server: Http2Server, options: CyodaServerOptions) {
    this.#server = server;
    this.options = options;
    const { port } = server.address() as AddressInfo;
    this.url = `${options.tls ? 'grpcs://localhost' : 'grpc://127.0.0.1'}:${port}`;
    server.on('session', (session) => {
      this.#sessions.add(session);
      session.on('ping', () => (this.pings += 1));
      session.on('error', () => undefined);
      session.on('close', () => this.#sessions.delete(session));
    });
    server.on('stream', (stream, headers) => this.#accept(stream, headers));
  }

  static async start(options: CyodaServerOptions = {}): Promise<CyodaServer> {
    const server = options.tls ? createSecureServer(options.tls) : createServer();
    server.listen(options.port ?? 0, options.tls ? 'localhost' : '127.0.0.1');
    await once(server, 'listening');
    return new CyodaServer(server, options);
  }

  /** Members that are joined now. */
  get members(): MemberStream[] {
    return [...this.#members];
  }

  get connections(): number {
    return this.#sessions.size;
  }

  /** The next member that joins, or one that nobody has asked for yet. */
  joined(): Promise<MemberStream> {
    const known = this.#joins.shift();
    if (known) return Promise.resolve(known);
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
    });
  }

  /** Asks all connections to go elsewhere, as before a restart: open streams stay. */
  goAway(): void {
    for (const session of this.#sessions) session.goaway();
  }

  /** Cuts all connections. */
  cut(): void {
    for (const session of this.#sessions) session.destroy();
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cut();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #accept(stream: ServerHttp2Stream, headers: Record<string, unknown>): void {
    stream.on('error', () => undefined);
    if (headers[':path'] !== PATH) return endCall(stream, UNIMPLEMENTED, 'no such method');
    const shown = /^Bearer (.+)$/.exec(String(headers['authorization']))?.[1];
    this.shownTokens.push(shown);
    const { token } = this.options;
    if (token !== undefined && shown !== token) {
      return endCall(stream, UNAUTHENTICATED, 'the token is not valid');
    }
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc' },
      { waitForTrailers: true },
    );
    let member: MemberStream | undefined;
    const unframer = new Unframer();
    stream.on('data', (chunk: Buffer) => {
      for (const message of unframer.add(chunk)) {
        if (member) member.received(message);
        else member = this.#join(stream, message);
      }
    });
    const gone = () => {
      if (!member) return;
      this.#members.delete(member);
      member.gone();
    };
    stream.on('close', gone);
    // A half-close fails all that is pending, and ends the call.
    stream.on('end', () => {
      gone();
      endCall(stream, 0);
    });
  }

  #join(stream: ServerHttp2Stream, message: Uint8Array): MemberStream | undefined {
    const event = decodeEvent(message);
    const body = bodyOf(event);
    if (event.type !== 'CalculationMemberJoinEvent' || typeof body === 'string') {
      this.faults.push(`the first event is ${event.type}, no join`);
      endCall(stream, INVALID_ARGUMENT, 'join first');
      return undefined;
    }
    this.faults.push(...joinFaults(body));
    const member = new MemberStream(stream, body, this.faults);
    const { greet, legalEntity = 'acme' } = this.options;
    if (greet !== 'none') this.#greet(member, { legalEntity, ...greet });
    this.#members.add(member);
    const waiter = this.#waiters.shift();
    if (waiter) waiter(member);
    else this.#joins.push(member);
    return member;
  }

  #greet(member: MemberStream, { legalEntity, ...fields }: Body): void {
    const { memberId } = member;
    const body = { id: memberId, memberId, joinedLegalEntityId: legalEntity, success: true };
    const event = {
      id: `greet-${memberId}`,
      source: 'urn:cyoda:test',
      specVersion: '1.0',
      type: 'CalculationMemberGreetEvent',
      text: JSON.stringify({ ...body, ...fields }),
    };
    member.http2.write(frame(encodeEvent(event)));
  }
}
