import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { textOf } from '../../broker/answers.ts';
import { Backoff } from '../../broker/backoff.ts';
import type { ConsumeLimits, Consumer, Received } from '../../ports/broker.ts';
import { maxDeliveriesIn } from './advisory.ts';
import type { MaxDeliveries } from './carry.ts';
import { Held, type Holding, type Tag } from './held.ts';
import type { NatsSettings } from './options.ts';
import { Pull, type PullEnd, sizeOf } from './pull.ts';
import { deliveryFacts, receivedOf } from './received.ts';
import type { Source, Streams } from './streams.ts';

/** `waiting`: for the server, or for the stream to be there. */
export interface NatsConsumer extends Consumer {
  readonly state: { state: 'waiting' | 'consuming' | 'stopped'; why?: string };
}

interface Wish {
  source: string;
  limits: ConsumeLimits;
  receive: (message: Received) => void;
}

type Ready = Source & { type: 'ready' };

const MAX_BATCH = 5000;
const MAX_PULLS = 4;
/** Messages that advisories name are fetched side by side. */
const MAX_FETCHES = 8;
const GIVE_BACK_MS = 2000;
const ACK = '+ACK';
/** After a millisecond: of several messages that come back at once, 2.9 forgets some until their time is over. */
const NAK = '-NAK {"delay":1000000}';
const IN_PROGRESS = '+WPI';

/** Pulls from a durable consumer, over whichever connection there is, until it is stopped. */
export class StreamConsumer implements NatsConsumer {
  readonly #wish: Wish;
  readonly #settings: NatsSettings;
  readonly #stopped: (consumer: StreamConsumer) => void;
  readonly #backoff: Backoff;
  readonly #held = new Held();
  readonly #pulls = new Set<Pull>();
  /** Advisories whose messages have to be fetched first. */
  readonly #unfetched: { holding: Holding; advisory: MaxDeliveries }[] = [];
  #fetches = 0;
  #connection: NatsConnection | undefined;
  #streams: Streams | undefined;
  #ready: Ready | undefined;
  #retry: unknown;
  #signs: unknown;
  #saidWhy: string | undefined;
  #state: NatsConsumer['state'] = { state: 'waiting' };
  #isDraining = false;
  /** The next message is larger than what is left: `alone` asks for one of any size, `settle` waits. */
  #tight: 'no' | 'alone' | 'settle' = 'no';
  /** What it had when it was stopped, and what came after that. */
  #left: string[] = [];
  /** Words to the server that no connection took. */
  readonly #unsaid = new Map<string, string>();

  constructor(wish: Wish, settings: NatsSettings, stopped: (one: StreamConsumer) => void) {
    this.#wish = wish;
    this.#settings = settings;
    this.#stopped = stopped;
    this.#backoff = new Backoff(settings.policy, settings.host.clock, settings.host.random);
  }

  get state(): NatsConsumer['state'] {
    return this.#state;
  }

  /** There is a connection. Resolves after the first try, whatever comes of it. */
  async attach(connection: NatsConnection, streams: Streams): Promise<void> {
    if (this.#state.state === 'stopped' || this.#connection === connection) return;
    this.#connection = connection;
    this.#streams = streams;
    const unsaid = [...this.#unsaid];
    this.#unsaid.clear();
    for (const [reply, word] of unsaid) this.#say(reply, word);
    await this.#try();
  }

  /** What was handed over stays valid: the server knows an acknowledgement by its subject, over any connection. */
  detach(why: string): void {
    const { clock } = this.#settings.host;
    this.#connection = undefined;
    this.#ready = undefined;
    clock.clearTimer(this.#retry);
    clock.clearTimer(this.#signs);
    for (const pull of this.#pulls) void pull.drain();
    this.#pulls.clear();
    if (this.#state.state !== 'stopped') this.#state = { state: 'waiting', why };
  }

  async ack(messages: readonly Received[]): Promise<void> {
    this.#settle(messages, ACK);
  }

  async requeue(messages: readonly Received[]): Promise<void> {
    this.#settle(messages, NAK);
  }

  drain(): void {
    this.#isDraining = true;
    this.#handOver();
  }

  /** What nobody has settled is given back, so that others need not wait for it. */
  async stop(): Promise<void> {
    if (this.#state.state === 'stopped') return;
    this.#state = { state: 'stopped' };
    const { clock } = this.#settings.host;
    clock.clearTimer(this.#retry);
    clock.clearTimer(this.#signs);
    this.#stopped(this);
    const connection = this.#connection;
    if (!connection) return;
    this.#left = this.#held.replies();
    this.#held.clear();
    const left = this.#giveBack(connection).catch(() => undefined);
    let timer: unknown;
    const enough = new Promise<void>((resolve) => {
      timer = clock.setTimer(resolve, GIVE_BACK_MS);
    });
    await Promise.race([left, enough]);
    clock.clearTimer(timer);
  }

  /** First the server has to know that nobody listens: what is given back before that would come here again. */
  async #giveBack(connection: NatsConnection): Promise<void> {
    await Promise.all(Array.from(this.#pulls, (pull) => pull.drain()));
    for (const reply of this.#left) this.#say(reply, NAK);
    await connection.flush();
  }

  async #try(): Promise<void> {
    const [connection, streams] = [this.#connection, this.#streams];
    if (!connection || !streams) return;
    const source = await streams.source(this.#wish.source);
    if (this.#connection !== connection || this.#state.state === 'stopped') return;
    if (source.type === 'fault') return this.#failed(source.why);
    this.#ready = source;
    this.#state = { state: 'consuming' };
    this.#saidWhy = undefined;
    this.#backoff.works();
    this.#showSigns(source.ackWaitMs / 3);
    this.#pull();
    this.#fetch();
  }

  /** The server hands a message out again when it hears nothing of it: the store may be away for longer than that. */
  #showSigns(everyMs: number): void {
    const { clock } = this.#settings.host;
    clock.clearTimer(this.#signs);
    const show = () => {
      for (const reply of this.#held.replies()) this.#say(reply, IN_PROGRESS);
      this.#showSigns(everyMs);
    };
    this.#signs = clock.setTimer(show, everyMs, true);
  }

  #failed(why: string): void {
    const { log, clock } = this.#settings.host;
    this.#ready = undefined;
    this.#state = { state: 'waiting', why };
    const { source } = this.#wish;
    // Once per cause: the rest is repetition.
    if (this.#saidWhy !== why) log.warn({ source, why }, 'not consuming: trying again');
    this.#saidWhy = why;
    clock.clearTimer(this.#retry);
    this.#retry = clock.setTimer(() => void this.#try(), this.#backoff.nextDelayMs());
  }

  /** Asks for as many messages and bytes as there is room for, in requests that are worth their way. */
  #pull(): void {
    const { maxMessages, maxBytes } = this.#wish.limits;
    const [connection, ready] = [this.#connection, this.#ready];
    if (!connection || !ready || this.#tight === 'settle' || this.#isDraining) return;
    // The word that it was lost is on its way.
    if (connection.isClosed()) return;
    let messages = maxMessages - this.#held.size;
    let bytes = maxBytes - this.#held.bytes;
    for (const pull of this.#pulls) {
      messages -= pull.messagesLeft;
      bytes -= pull.bytesLeft;
    }
    const isWorthIt = messages >= maxMessages / 4 && bytes >= maxBytes / 4;
    const isIdle = this.#pulls.size === 0;
    if (messages < 1 || bytes < 1 || !(isIdle || isWorthIt) || this.#pulls.size >= MAX_PULLS)
      return;
    const isAlone = this.#tight === 'alone';
    if (isAlone && !isIdle) return;
    this.#tight = 'no';
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${ready.stream}.${ready.consumer}`;
    const request = isAlone
      ? { subject, messages: 1 }
      : { subject, messages: Math.min(messages, MAX_BATCH), bytes };
    const pull = new Pull(connection, request, this.#settings.host.clock, {
      message: (message) => this.#received(message),
      ended: (one, end) => this.#pullEnded(one, end),
    });
    this.#pulls.add(pull);
  }

  #pullEnded(pull: Pull, end: PullEnd): void {
    this.#pulls.delete(pull);
    if (this.#state.state === 'stopped' || !this.#ready) return;
    if (end.type === 'failed') return this.#failed(end.why);
    if (end.type === 'too-large' && !pull.hasBrought) {
      this.#tight = this.#held.size === 0 ? 'alone' : 'settle';
    }
    this.#pull();
  }

  #received(message: Msg): void {
    const { reply = '', subject, data: payload } = message;
    const facts = deliveryFacts(reply);
    if (!facts) return;
    if (this.#state.state === 'stopped') return void this.#left.push(reply);
    const { stream, sequence, storedAtMs, deliveries } = facts;
    // It waits here, and the server has lost its patience: the next word to it goes by the new subject.
    if (this.#held.renew(sequence, reply)) return;
    const received = receivedOf({
      tag: { sequence } satisfies Tag,
      subject,
      payload,
      headers: message.headers,
      stream,
      sequence,
      storedAtMs,
      redelivered: deliveries > 1,
    });
    const advisory = maxDeliveriesIn(subject, payload);
    const bytes = sizeOf(message);
    const holding = this.#held.add(received, reply, bytes);
    if (advisory) {
      this.#unfetched.push({ holding, advisory });
      this.#fetch();
    } else {
      this.#held.complete(holding, bytes);
      this.#handOver();
    }
  }

  #settle(messages: readonly Received[], word: string): void {
    for (const message of messages) {
      const reply = this.#held.settle(message);
      if (reply !== undefined) this.#say(reply, word);
    }
    if (this.#tight === 'settle') this.#tight = 'no';
    this.#handOver();
    this.#fetch();
    this.#pull();
  }

  /** Hands over what is complete, unless what was handed over before has to be settled first. */
  #handOver(): void {
    if (this.#isDraining && this.#held.hasHanded) return;
    const wasDraining = this.#isDraining;
    this.#isDraining = false;
    for (const message of this.#held.take()) this.#wish.receive(message);
    if (wasDraining) this.#pull();
  }

  /** The dead letter is the message itself, not the word about it. Fetched as far as there is room. */
  #fetch(): void {
    while (this.#fetches < MAX_FETCHES && this.#streams && this.#ready) {
      const hasRoom = !this.#held.hasHanded || this.#held.bytes < this.#wish.limits.maxBytes;
      const next = hasRoom ? this.#unfetched.shift() : undefined;
      if (!next) return;
      this.#fetches += 1;
      void this.#fetchOne(next.holding, next.advisory, this.#streams);
    }
  }

  async #fetchOne(holding: Holding, advisory: MaxDeliveries, streams: Streams): Promise<void> {
    try {
      const { stream, sequence } = advisory;
      const message = await streams.message(stream, sequence);
      const { received, bytes } = holding;
      holding.received = message
        ? receivedOf({
            tag: received.tag,
            subject: message.subject,
            payload: message.data,
            headers: message.header,
            stream,
            sequence,
            storedAtMs: message.time.getTime(),
            redelivered: received.redelivered,
            maxDeliveries: advisory,
          })
        : withAdvisory(received, { ...advisory, isGone: true });
      this.#held.complete(holding, bytes + (message?.data.length ?? 0));
    } catch (error) {
      this.#unfetched.push({ holding, advisory });
      // The source is looked at again, and with it what was not fetched.
      if (this.#ready) this.#failed(`A dead letter could not be fetched: ${textOf(error)}`);
    } finally {
      this.#fetches -= 1;
    }
    if (this.#state.state === 'stopped') return;
    this.#handOver();
    this.#fetch();
  }

  #say(reply: string, word: string): void {
    try {
      if (this.#connection) return this.#connection.publish(reply, word);
    } catch {
      // The connection is closed, and the next one is told.
    }
    if (word !== IN_PROGRESS) this.#unsaid.set(reply, word);
  }
}

function withAdvisory(received: Received, maxDeliveries: MaxDeliveries): Received {
  const nats = Object(received.extra?.['nats']) as object;
  return { ...received, extra: { nats: { ...nats, maxDeliveries } } };
}
