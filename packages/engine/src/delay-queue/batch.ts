import { delayFor, type Policy } from 'redrive';
import type { Host } from '../host.ts';
import type { DelayHandler } from '../ports/delay-queue.ts';
import { readAnswers } from './checks.ts';
import type { Leased, LeaseEnd, LeaseSource } from './lease-source.ts';

/** Before an entry whose handler failed is handed over once more. */
const unansweredPauses: Policy = { base: '100ms', cap: '30s', jitter: 'equal' };
/** Between two tries to write answers. */
const endPauses: Policy = { base: '50ms', cap: '2s', jitter: 'equal' };
/** A lease is renewed after this part of its time, so that two tries may fail. */
const RENEW_PART = 1 / 3;

/** One batch in the hands of a handler: its lease is renewed until its answers are written. */
export class Batch<L extends Leased> {
  /** The handler has answered, and that is written as far as the lease allows. Never rejects. */
  readonly over: Promise<void>;
  readonly #source: LeaseSource<L>;
  readonly #leased: readonly L[];
  readonly #host: Host;
  readonly #abort = new AbortController();
  readonly #givenUp = Promise.withResolvers<void>();
  /** By the monotonic clock: the lease surely holds until then. */
  #heldUntilMs: number;
  #timer: unknown;
  #isAnswered = false;

  constructor(
    source: LeaseSource<L>,
    { leased, askedAtMs }: { leased: readonly L[]; askedAtMs: number },
    { handler, timeoutMs }: { handler: DelayHandler; timeoutMs: number },
    host: Host,
  ) {
    this.#source = source;
    this.#leased = leased;
    this.#host = host;
    this.#heldUntilMs = askedAtMs + source.leaseMs;
    this.#beatIn(source.leaseMs * RENEW_PART);
    // A handler that hangs must not keep its entries by leases that are renewed for ever.
    const limit = host.clock.setTimer(() => this.#timeOut(timeoutMs), timeoutMs);
    this.over = this.#run(handler).finally(() => {
      for (const timer of [this.#timer, limit]) host.clock.clearTimer(timer);
    });
  }

  /** Aborts the handler, and gives the entries back without waiting for it. */
  async giveUp(why: string): Promise<void> {
    this.#lose(why);
    this.#givenUp.resolve();
    await this.over;
  }

  #timeOut(timeoutMs: number): void {
    if (this.#isAnswered) return;
    const message = `the handler of delayed entries did not answer within ${timeoutMs} ms; the entries are handed over again`;
    this.#host.log.error({ count: this.#leased.length, timeoutMs }, message);
    void this.giveUp(`The handler did not answer within ${timeoutMs} ms.`);
  }

  async #run(handler: DelayHandler): Promise<void> {
    const ends = await Promise.race([this.#ask(handler), this.#givenUp.promise]);
    this.#isAnswered = true;
    if (ends && !this.#isLost) return this.#write(ends);
    // Answers count no more. What is still held must not wait for the end of its lease.
    const back = this.#leased.map((): LeaseEnd => ({ type: 'unanswered', delayMs: 0 }));
    await this.#source.end(this.#leased, back).catch((error: unknown) => {
      this.#host.log.debug({ err: error }, 'delayed entries come again when their lease is over');
    });
  }

  async #ask(handler: DelayHandler): Promise<readonly LeaseEnd[]> {
    const entries = this.#leased.map(({ entry }) => entry);
    const count = entries.length;
    try {
      const answers = readAnswers(await handler(entries, this.#abort.signal), count);
      if (typeof answers !== 'string') return answers;
      const message = `the handler of delayed entries answered wrongly, and they come again. ${answers}`;
      this.#host.log.error({ count }, message);
    } catch (error) {
      const message = 'the handler of delayed entries failed, and they come again';
      this.#host.log.warn({ err: error, count }, message);
    }
    return this.#leased.map(({ entry }) => {
      const facts = { attempt: entry.redeliveries + 1, random: this.#host.random() };
      return { type: 'unanswered', delayMs: delayFor(unansweredPauses, facts) };
    });
  }

  /** Tries for as long as the lease holds: later the entries come again, and their answers with them. */
  async #write(ends: readonly LeaseEnd[]): Promise<void> {
    for (let attempt = 1; !this.#isLost; attempt++) {
      try {
        return await this.#source.end(this.#leased, ends);
      } catch (error) {
        const count = ends.length;
        this.#host.log.warn(
          { err: error, attempt, count },
          'writing the answers of delayed entries failed',
        );
        await this.#pause(delayFor(endPauses, { attempt, random: this.#host.random() }));
      }
    }
  }

  #beatIn(ms: number): void {
    this.#timer = this.#host.clock.setTimer(() => void this.#beat(), ms);
  }

  async #beat(): Promise<void> {
    const { clock, log } = this.#host;
    const askedAtMs = clock.monotonic();
    const leftMs = this.#heldUntilMs - askedAtMs;
    if (leftMs <= 0) return this.#lose('The lease could not be renewed in time.');
    // A renewal without an answer must not hide the end of the lease.
    this.#timer = clock.setTimer(
      () => this.#lose('The lease could not be renewed in time.'),
      leftMs,
    );
    let isHeld = false;
    try {
      const held = await this.#source.renew(this.#leased);
      if (held.includes(false)) return this.#lose('The lease of an entry was lost.');
      isHeld = true;
    } catch (error) {
      log.warn({ err: error, leftMs }, 'renewing the lease of delayed entries failed');
    }
    if (this.#isLost) return;
    clock.clearTimer(this.#timer);
    if (isHeld) this.#heldUntilMs = askedAtMs + this.#source.leaseMs;
    const nextMs = this.#source.leaseMs * (isHeld ? RENEW_PART : RENEW_PART / 4);
    this.#beatIn(Math.min(nextMs, Math.max(0, this.#heldUntilMs - clock.monotonic())));
  }

  get #isLost(): boolean {
    return this.#abort.signal.aborted;
  }

  #lose(why: string): void {
    this.#host.clock.clearTimer(this.#timer);
    if (!this.#isLost) this.#abort.abort(new Error(why));
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#host.clock.setTimer(resolve, ms);
    });
  }
}
