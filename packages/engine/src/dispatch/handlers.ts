import { inspect } from 'node:util';
import { classify, type Duration, type Failure } from 'redrive';
import { durationMs } from 'redrive/internal';
import type { Log } from '../host.ts';
import { isWish, type Wish } from '../model/outcomes.ts';
import type { Delivery, Outcome, Run } from '../ports/delivery.ts';
import type { Transaction } from '../ports/idempotency.ts';
import type { OnceContext, OnceRunner } from './once.ts';
import type { StandardSchema } from './standard-schema.ts';
import { idempotencyKeyOf, type Task } from '../model/task.ts';

/** What a handler is told beside its payload. */
export interface HandlerContext {
  /** Aborted when the lease is lost, the time is up, or the engine stops. */
  readonly signal: AbortSignal;
  /** The 1-based number of this execution. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** The message id: the same for every execution of this task. */
  readonly id: string;
  /** The same for every execution of the same message; what an operator has changed is another message. */
  readonly idempotencyKey: string;
  /** What is left of the time for this execution. */
  readonly remainingMs: number;
  readonly log: Log;
}

/** The work. What it returns is ignored, unless it is one of `retryIn`, `giveUp`, `snooze`; those may be thrown too. */
export type Handler<T, Context = HandlerContext> = (payload: T, context: Context) => unknown;

/** What a handler is told that runs under its idempotency key. */
export type IdempotentContext<Tx> = Tx extends undefined
  ? HandlerContext
  : HandlerContext & {
      /** What is written here commits together with the record that the task is done. */
      readonly tx: Tx;
    };

export interface RegisteredHandler {
  schema: StandardSchema | undefined;
  run: Handler<never>;
  /** Runs it under its idempotency key. */
  once?: OnceRunner | undefined;
}

/** Delivers to the functions of this process. */
export class HandlerDelivery implements Delivery {
  readonly kind = 'handler';
  readonly #handlers: ReadonlyMap<string, RegisteredHandler>;
  readonly #log: Log;
  readonly #nowMs: () => number;

  constructor(handlers: ReadonlyMap<string, RegisteredHandler>, log: Log, nowMs: () => number) {
    this.#handlers = handlers;
    this.#log = log;
    this.#nowMs = nowMs;
  }

  async deliver(task: Task, run: Run): Promise<Outcome> {
    const handler = this.#handlers.get(task.destination.address)!;
    const plain = readPlain(task);
    const { schema } = handler;
    const read =
      schema && !('failure' in plain) ? await checkPayload(plain.payload, schema) : plain;
    if ('failure' in read) return { type: 'invalid', failure: read.failure };
    const work = (more?: OnceContext) =>
      this.#work(handler, read.payload, new Context(task, run, this.#log, more));
    return handler.once ? handler.once.run(task, run, work) : work();
  }

  async #work(handler: RegisteredHandler, payload: unknown, context: Context): Promise<Outcome> {
    try {
      const result = await handler.run(payload as never, context);
      return isWish(result) ? outcomeOf(result) : done;
    } catch (error) {
      return this.#thrown(error);
    }
  }

  /** To throw a wish means the same as to return it. */
  #thrown(thrown: unknown): Outcome {
    let error = thrown;
    try {
      if (isWish(thrown)) return outcomeOf(thrown);
    } catch (fault) {
      error = fault;
    }
    return { type: 'failed', failure: classify(error, { nowMs: this.#nowMs() }) };
  }
}

const done: Outcome = { type: 'done' };

class Context implements HandlerContext {
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly id: string;
  readonly tx?: Transaction;
  readonly #run: Run;
  readonly #task: Task;
  readonly #log: Log;
  readonly #once: OnceContext | undefined;

  constructor(task: Task, run: Run, log: Log, once?: OnceContext) {
    this.attempt = run.attempt;
    this.maxAttempts = run.maxAttempts;
    this.id = task.messageId;
    this.#run = run;
    this.#task = task;
    this.#log = log;
    this.#once = once;
    if (once?.tx) this.tx = once.tx;
  }

  get signal(): AbortSignal {
    return (this.#once ?? this.#run).signal;
  }

  get idempotencyKey(): string {
    return idempotencyKeyOf(this.#task);
  }

  get remainingMs(): number {
    return this.#run.remainingMs;
  }

  get log(): Log {
    const fields = { id: this.id, lane: this.#task.lane, attempt: this.attempt };
    const to = (level: keyof Log) => (more: object, message: string) =>
      this.#log[level]({ ...fields, ...more }, message);
    return { debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') };
  }
}

type Read = { payload: unknown } | { failure: Failure };

function readPlain({ payload }: Task): Read {
  try {
    return { payload: payload.length === 0 ? undefined : JSON.parse(utf8.decode(payload)) };
  } catch {
    return { failure: invalid('The payload is not JSON.') };
  }
}

async function checkPayload(value: unknown, schema: StandardSchema): Promise<Read> {
  const checked = await schema['~standard'].validate(value);
  if (!checked.issues) return { payload: checked.value };
  return { failure: invalid(checked.issues.map(({ message }) => message).join('; ')) };
}

const utf8 = new TextDecoder();

function invalid(message: string): Failure {
  return { class: 'business', code: 'INVALID_PAYLOAD', message };
}

/** A wish of another version of this library may be one that is not known here: that is a failure of the handler. */
function outcomeOf(wish: Wish): Outcome {
  switch (wish.type) {
    case 'retryIn':
      return {
        type: 'retryIn',
        delayMs: delayOf(wish.delay),
        failure: { class: 'transient', code: 'RETRY_IN' },
      };
    case 'snooze':
      return { type: 'snooze', delayMs: delayOf(wish.delay) };
    case 'giveUp':
      return {
        type: 'giveUp',
        failure: { class: 'business', code: 'GAVE_UP', message: reasonOf(wish.reason) },
      };
    default:
      throw new TypeError('The handler returned a wish that this version does not know.');
  }
}

function delayOf(delay: Duration): number {
  const ms = Math.ceil(durationMs(delay));
  if (Number.isNaN(ms)) throw new TypeError('The handler wished for a delay that is none.');
  return ms;
}

/** An error handed over as it is says what it is. */
function reasonOf(reason: unknown): string {
  if (typeof reason === 'string') return reason;
  return reason instanceof Error ? reason.message : inspect(reason);
}
