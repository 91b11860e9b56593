/** The server's side of one member's stream: sends requests, and holds the member to the protocol. */
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { ServerHttp2Stream } from 'node:http2';
import { answerFaults, type Body, bodyOf } from './checks.ts';
import { decodeEvent, encodeEvent, frame, type WireEvent } from './wire.ts';

/** The stream was gone before there was an answer. */
export class StreamGone extends Error {
  override readonly name = 'StreamGone';
}

export interface RequestOptions {
  /** How the body is sent. */
  as?: 'text' | 'bytes';
  /** Fields of the body that differ; undefined leaves one out. */
  fields?: Body;
}

interface Pending {
  readonly type: string;
  readonly entityId: unknown;
  readonly resolve: (answer: Body) => void;
  readonly reject: (error: Error) => void;
}

const attributes = { authtype: 'user', authid: 'someone' };

export class MemberStream {
  readonly memberId = randomUUID();
  readonly join: Body;
  readonly http2: ServerHttp2Stream;
  /** Requests that were answered. */
  answered = 0;
  readonly #faults: string[];
  readonly #pending = new Map<string, Pending>();
  readonly #answeredIds = new Set<string>();
  readonly #sentIds = new Map<string, string>();
  readonly #memberIds = new Set<string>();
  readonly #events = new EventEmitter();
  #isGone = false;

  constructor(http2: ServerHttp2Stream, join: Body, faults: string[]) {
    this.http2 = http2;
    this.join = join;
    this.#faults = faults;
    this.#events.setMaxListeners(0);
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  get waiting(): number {
    return this.#pending.size;
  }

  /** Asks for a criterion about an entity, as the server does for a transition. */
  criterion(name: string, entity: unknown, options: RequestOptions = {}): Promise<Body> {
    const named = { criteriaId: 'c1', criteriaName: name, target: 'TRANSITION' };
    return this.ask('EntityCriteriaCalculationRequest', named, entity, options);
  }

  /** Asks for the time of a scheduled transition. */
  schedule(name: string, entity: unknown, options: RequestOptions = {}): Promise<Body> {
    const named = { functionId: 'f1', functionName: name };
    return this.ask('EntityFunctionCalculationRequest', named, entity, options);
  }

  ask(type: string, named: Body, entity: unknown, options: RequestOptions = {}): Promise<Body> {
    const body: Body = {
      // Always the member's id: whoever takes it for the request's would see one request only.
      id: this.memberId,
      requestId: randomUUID(),
      entityId: randomUUID(),
      ...named,
      workflow: { id: 'w1', name: 'payments' },
      transition: { id: 't1', name: 'retry' },
      transactionId: randomUUID(),
      parameters: 'retry-delay-check',
      ...(entity === undefined ? {} : { payload: { type: 'JSON', data: entity, meta: {} } }),
      ...options.fields,
    };
    const answer = this.expectAnswer(type, String(body['requestId']), body['entityId']);
    this.send(type, JSON.stringify(body), options.as);
    return answer;
  }

  /** For bodies that a test writes by itself. */
  expectAnswer(type: string, requestId: string, entityId?: unknown): Promise<Body> {
    if (this.#isGone) return Promise.reject(new StreamGone('the stream was gone already'));
    return new Promise((resolve, reject) => {
      const answerType = type.replace(/Request$/, 'Response');
      this.#pending.set(requestId, { type: answerType, entityId, resolve, reject });
    });
  }

  /** Resolves with the acknowledgement. */
  keepAlive(): Promise<Body> {
    const body = JSON.stringify({ id: this.memberId, memberId: this.memberId });
    return this.#ackOf(this.send('CalculationMemberKeepAliveEvent', body));
  }

  /** An event that only an acknowledgement can answer: one that is unreadable, say. */
  async acknowledged(type: string, text: string): Promise<Body> {
    return this.#ackOf(this.send(type, text));
  }

  /** The id of the envelope. */
  send(type: string, text: string, as: 'text' | 'bytes' = 'text'): string {
    const { id, bytes } = this.#encoded(type, text, as);
    if (!this.http2.destroyed && !this.http2.writableEnded) this.http2.write(bytes);
    return id;
  }

  /** The first part of an event, and then the stream is reset. */
  sendHalf(type: string, text: string): void {
    const { bytes } = this.#encoded(type, text, 'text');
    this.http2.write(bytes.subarray(0, bytes.length / 2), () => this.reset());
  }

  reset(): void {
    this.http2.close(2);
  }

  /** Ends the call in the way of gRPC. */
  end(status = 0, message = ''): void {
    endCall(this.http2, status, message);
  }

  /** Called by the server. */
  received(bytes: Uint8Array): void {
    const event = decodeEvent(bytes);
    const body = bodyOf(event);
    if (typeof body === 'string') {
      this.#faults.push(body);
      return;
    }
    if (this.#memberIds.has(event.id)) this.#faults.push(`the id ${event.id} was used twice`);
    this.#memberIds.add(event.id);
    this.#events.emit('event', event.type, body);
    if (event.type === 'EventAckResponse') this.#acked(body);
    else this.#answered(event, body);
  }

  /** Called by the server. */
  gone(): void {
    this.#isGone = true;
    for (const { reject } of this.#pending.values()) reject(new StreamGone('the stream is gone'));
    this.#pending.clear();
    this.#events.emit('gone');
  }

  /** The order in which events of a type come: calls back for each. */
  onEvent(listener: (type: string, body: Body) => void): void {
    this.#events.on('event', listener);
  }

  async untilGone(): Promise<void> {
    if (!this.#isGone) await once(this.#events, 'gone');
  }

  #encoded(type: string, text: string, as: 'text' | 'bytes'): { id: string; bytes: Buffer } {
    const id = randomUUID();
    this.#sentIds.set(id, type);
    const event: Omit<WireEvent, 'attributes'> = {
      id,
      source: 'urn:cyoda:test',
      specVersion: '1.0',
      type,
      ...(as === 'text' ? { text } : { bytes: Buffer.from(text) }),
    };
    return { id, bytes: frame(encodeEvent(event, attributes)) };
  }

  #ackOf(id: string): Promise<Body> {
    return new Promise((resolve, reject) => {
      const onAck = (body: Body) => {
        this.#events.off('gone', onGone);
        resolve(body);
      };
      const onGone = () => {
        this.#events.off(`ack ${id}`, onAck);
        reject(new StreamGone('the stream is gone'));
      };
      this.#events.once(`ack ${id}`, onAck);
      this.#events.once('gone', onGone);
    });
  }

  #acked(body: Body): void {
    const sourceId = String(body['sourceEventId']);
    const source = this.#sentIds.get(sourceId);
    if (typeof body['success'] !== 'boolean') this.#faults.push('ack: success is missing');
    if (source === undefined) this.#faults.push(`ack of an unknown event ${sourceId}`);
    if (source === 'EventAckResponse') this.#faults.push('ack of an ack');
    this.#sentIds.delete(sourceId);
    this.#events.emit(`ack ${sourceId}`, body);
  }

  #answered({ type }: WireEvent, body: Body): void {
    const requestId = String(body['requestId']);
    const pending = this.#pending.get(requestId);
    if (!pending) {
      const kind = this.#answeredIds.has(requestId) ? 'a second answer' : 'an answer to nobody';
      this.#faults.push(`${type}: ${kind} (${requestId})`);
      return;
    }
    this.#pending.delete(requestId);
    this.#answeredIds.add(requestId);
    this.answered += 1;
    if (type !== pending.type) this.#faults.push(`${type} instead of ${pending.type}`);
    this.#faults.push(...answerFaults(type, body, pending.entityId));
    pending.resolve(body);
  }
}

/** Trailers with the status. Whoever has not answered with headers yet answers with nothing else. */
export function endCall(http2: ServerHttp2Stream, status: number, message = ''): void {
  if (http2.destroyed || http2.writableEnded) return;
  const trailers = { 'grpc-status': String(status), 'grpc-message': encodeURIComponent(message) };
  if (!http2.headersSent) {
    http2.respond(
      { ':status': 200, 'content-type': 'application/grpc', ...trailers },
      { endStream: true },
    );
    return;
  }
  http2.once('wantTrailers', () => http2.sendTrailers(trailers));
  http2.end();
}
