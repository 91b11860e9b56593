/** Routing decisions over request-reply of NATS. Loaded only where NATS_URL and ROUTING_DIR are set. */
import { connectWithRetry, subscribe } from '@redrive/engine/nats';
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import type { Logger } from 'pino';
import { type Clock, createRetryManager, delayFor, type Policy } from 'redrive';
import { Problem } from '../../http/problem.ts';
import { natsConnection } from '../../nats-wiring.ts';
import type { ServiceContext } from '../../service-context.ts';
import type { Settings } from '../../settings/settings.ts';
import { type Answer, answerTo, operations, refusal } from './answer.ts';

export interface RouteResponder {
  /** Why nothing is served; undefined: it is, or was not started yet. */
  readonly trouble: string | undefined;
  /** Serves as soon as NATS can be had. */
  start(): void;
  /** Answers what is under way, and takes no more. */
  stop(): Promise<void>;
}

interface ResponderOptions {
  settings: Settings;
  name: string;
  routing: ServiceContext['routing'];
  log: Logger;
  clock: Clock;
  /** Requests under way at once (1000): decisions may wait for a store of sessions. */
  maxUnderWay?: number;
}

/** Instances share the requests. */
const GROUP = 'redrive';
const MAX_UNDER_WAY = 1000;
/** Between two looks for a server that is not there. */
const pauses: Policy = { base: '500ms', cap: '10s', multiplier: 2, jitter: 'equal' };
/** How long answers under way have at the end. */
const DRAIN_MS = 2000;

export function createRouteResponder(options: ResponderOptions): RouteResponder {
  return new Responder(options);
}

class Responder implements RouteResponder {
  readonly #options: ResponderOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #connection: NatsConnection | undefined;
  #subscriptions: Subscription[] = [];
  #underWay = 0;
  #idle: (() => void) | undefined;
  #trouble: string | undefined;

  constructor(options: ResponderOptions) {
    this.#options = options;
  }

  get trouble(): string | undefined {
    return this.#trouble;
  }

  start(): void {
    this.#running ??= this.#serve();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    const connection = this.#connection;
    if (!connection) return;
    await within(this.#options.clock, DRAIN_MS, this.#drain());
    await connection.close();
  }

  /** Tries for as long as it takes. The client connects again, and subscribes again, by itself after that. */
  async #serve(): Promise<void> {
    const { signal } = this.#stopping;
    const { log, clock } = this.#options;
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        await this.#connect(signal);
        this.#trouble = undefined;
        return;
      } catch (error) {
        await this.#connection?.close();
        this.#connection = undefined;
        if (signal.aborted) return;
        const { cause = error } = Object(error) as { cause?: unknown };
        this.#trouble = `Routing over NATS is not served: ${String(cause)}`;
        const delayMs = delayFor(pauses, { attempt, random: Math.random() });
        const level = attempt === 1 ? 'warn' : 'debug';
        log[level]({ err: cause, delay_ms: delayMs }, 'no routing over NATS yet, trying again');
        await pause(clock, delayMs, signal);
      }
    }
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const { settings, name, log, clock } = this.#options;
    const { url, ...credentials } = natsConnection(settings);
    // One attempt each: the loop around goes on for ever.
    const manager = createRetryManager({
      clock,
      categories: { NATS_CONNECT: { maxAttempts: 1 }, NATS_SUBSCRIBE: { maxAttempts: 1 } },
    });
    const common = { manager, signal };
    const connection = await connectWithRetry(url, { ...credentials, ...common, name });
    this.#connection = connection;
    const subjects: string[] = [];
    for (const operation of Object.keys(operations) as (keyof typeof operations)[]) {
      const subject = `${settings.natsRoutingSubject}.${operation}`;
      const subscription = await subscribe(connection, subject, { ...common, queue: GROUP });
      this.#subscriptions.push(subscription);
      void this.#read(subscription, operation);
      subjects.push(subject);
    }
    log.info({ subjects }, 'routing decisions are answered over NATS');
  }

  async #read(subscription: Subscription, operation: keyof typeof operations): Promise<void> {
    const { log } = this.#options;
    try {
      for await (const message of subscription) void this.#answer(message, operation);
    } catch (err) {
      this.#trouble = `Routing over NATS is not served: ${String(err)}`;
      log.error({ err, operation }, 'routing over NATS has ended');
    }
  }

  async #answer(message: Msg, operation: keyof typeof operations): Promise<void> {
    const { routing, settings, log, maxUnderWay = MAX_UNDER_WAY } = this.#options;
    let answer: Answer;
    if (this.#underWay >= maxUnderWay) {
      const detail = `${maxUnderWay} requests are under way in this instance. Ask again soon.`;
      answer = refusal(new Problem('ROUTING_BUSY', detail));
    } else {
      this.#underWay += 1;
      answer = await answerTo(routing, operation, message.data, settings.maxRequestBytes);
      this.#underWay -= 1;
    }
    if (answer.fault !== undefined) {
      log.error({ err: answer.fault, operation }, 'a request over NATS could not be answered');
    }
    try {
      // False where nobody waits for an answer: an outcome may be reported without one.
      message.respond(answer.body, { headers: answer.headers });
    } catch (err) {
      log.debug({ err, operation }, 'an answer over NATS could not be sent');
    }
    if (this.#underWay === 0) this.#idle?.();
  }

  #untilIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle = resolve;
    });
  }

  async #drain(): Promise<void> {
    await Promise.allSettled(this.#subscriptions.map((one) => one.drain()));
    if (this.#underWay > 0) await this.#untilIdle();
    await this.#connection?.flush().catch(() => undefined);
  }
}

function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clock.clearTimer(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.setTimer(end, ms);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}

async function within(clock: Clock, ms: number, work: Promise<void>): Promise<void> {
  let timer: unknown;
  const limit = new Promise<void>((resolve) => {
    timer = clock.setTimer(resolve, ms);
  });
  await Promise.race([work, limit]);
  clock.clearTimer(timer);
}
