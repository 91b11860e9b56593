import { type AuditEntry, type AuditEvent, policyEntry } from './audit-events.ts';
import { delayFor } from '../policy/backoff.ts';
import type { Clock } from '../clock.ts';
import { pause } from '../run/pause.ts';
import type { DefinedPolicy } from '../policy/policy.ts';

/** Where a trail is written to. */
export interface AuditWriter {
  /** Writes in order, all or nothing. */
  write(events: readonly AuditEvent[]): PromiseLike<void> | void;
}

interface TrailOptions {
  /** Absent: the trail is off. */
  sink?: AuditWriter | undefined;
  /** Only the fields of the contract, without the object `redrive`: such a trail cannot be replayed. */
  strict: boolean;
  /** Tells this writer from others. */
  instance: string;
  clock: Clock;
  /** Calls back in a later turn of the event loop. */
  defer: (callback: () => void) => unknown;
  /** Hears that events were lost. */
  report: (what: string, facts: { error?: unknown; events?: number }) => void;
  /** What is kept of an event, whose message may have been erased. */
  kept?: (event: AuditEvent, nowMs: number) => AuditEvent;
}

/** A policy in use is registered again so often: whatever is cut from a trail's beginning, the rest replays alone. */
export const REGISTER_AGAIN_MS = 3_600_000;

const MAX_WAITING = 10_000;
const MAX_BATCH = 1000;
const MAX_REGISTERED = 10_000;
const TIMEOUT_MS = 5000;
/** So many tries of a batch: some seconds of a sink that is away cost nothing but memory. */
const MAX_TRIES = 5;
const pauses = { base: 100, cap: 5000, multiplier: 4, jitter: 'none' } as const;
/** Writes without an answer at once; past that the sink is not asked. */
const MAX_HUNG = 3;
/** How long events may wait for others that are written with them. */
const SOON_MS = 100;
const DROPPED = 'events_dropped';

/**
 * Hands events to the audit sink, in batches, beside the work and never in its way. What a sink cannot take is
 * counted and said, to the caller and in the trail itself, never dropped in silence.
 */
export class AuditTrail {
  readonly #options: TrailOptions;
  /** Tells this run of an instance from the one before, whose numbers began at 1 too. */
  readonly #run: number;
  readonly #closing = new AbortController();
  /** Policies by fingerprint, and when they were registered. */
  readonly #registered = new Map<string, number>();
  readonly #hung = new Set<Promise<void>>();
  #waiting: AuditEvent[] = [];
  #work: Promise<void> | undefined;
  /** The timer of what is to be written soon. */
  #soon: unknown;
  #sequence = 0;
  #last = { ms: NaN, text: '' };
  /** Dropped, and the trail does not say so yet. */
  #unsaid = 0;
  dropped = 0;

  constructor(options: TrailOptions) {
    this.#options = options;
    this.#run = Math.floor(options.clock.now());
  }

  get isOn(): boolean {
    return this.#options.sink !== undefined;
  }

  write(entry: AuditEntry): void {
    if (this.#add(entry)) this.#work ??= this.#flush();
  }

  /** For events that come with every request, where a commit for each would hold up the next one. They are written together, a little later. */
  writeSoon(entry: AuditEntry): void {
    if (!this.#add(entry) || this.#work) return;
    if (this.#waiting.length >= MAX_BATCH) this.#work = this.#flush();
    else this.#soon ??= this.#options.clock.setTimer(() => this.flushSoon(), SOON_MS, true);
  }

  /** Whether it is among those that will be written. */
  #add(entry: AuditEntry): boolean {
    if (!this.isOn) return false;
    // Dropped or not, it has its number: a gap shows what is missing.
    this.#sequence += 1;
    if (this.#waiting.length >= MAX_WAITING) {
      if (this.#unsaid === 0) {
        this.#options.report(
          'the audit sink is too slow or away: events are dropped, and counted',
          {},
        );
      }
      this.#drop(1);
      return false;
    }
    this.#waiting.push(this.#event(entry));
    return true;
  }

  /** Begins to write what would be written soon. */
  flushSoon(): void {
    if (this.#soon === undefined) return;
    this.#options.clock.clearTimer(this.#soon);
    this.#soon = undefined;
    this.#work ??= this.#flush();
  }

  /** Before a decision by this policy is written. */
  register(policy: DefinedPolicy): void {
    // Nothing in a strict trail refers to it.
    if (!this.isOn || this.#options.strict) return;
    const { fingerprint } = policy;
    const nowMs = this.#options.clock.now();
    const ageMs = nowMs - (this.#registered.get(fingerprint) ?? -Infinity);
    // A clock that was set back: once more does no harm.
    if (ageMs >= 0 && ageMs < REGISTER_AGAIN_MS) return;
    if (this.#registered.size >= MAX_REGISTERED) this.#registered.clear();
    this.#registered.set(fingerprint, nowMs);
    this.write(policyEntry(policy));
  }

  /** Changes the events that wait, in place: a batch that is being written is tried again with the same objects. */
  rewrite(change: (event: AuditEvent) => AuditEvent): void {
    for (const event of this.#waiting) Object.assign(event, change(event));
  }

  /** Writes what waits, as far as the sink takes it. */
  async close(): Promise<void> {
    this.#closing.abort();
    // Under way, it says so by itself, or has just seen that the sink takes nothing.
    if (!this.#work) this.#sayDropped();
    await this.flush();
  }

  /** Until everything that was told so far is written, or given up. */
  async flush(): Promise<void> {
    this.flushSoon();
    while (this.#work) await this.#work;
  }

  #event({ redrive, ...fields }: AuditEntry): AuditEvent {
    const { instance, kept, strict } = this.#options;
    const event = { ...fields, timestamp: this.#timestamp() } as AuditEvent;
    event.redrive = { instance, run: this.#run, sequence: this.#sequence, ...redrive };
    const made = kept ? kept(event, this.#last.ms) : event;
    if (strict) delete made.redrive;
    return made;
  }

  /** Many events have the same. */
  #timestamp(): string {
    const ms = Math.floor(this.#options.clock.now());
    if (this.#last.ms !== ms) this.#last = { ms, text: new Date(ms).toISOString() };
    return this.#last.text;
  }

  async #flush(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#options.defer(resolve);
    });
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, MAX_BATCH);
      const isWritten = await this.#persist(batch);
      // Nobody waits for a sink that fails while it is closed.
      const isOver = !isWritten && this.#closing.signal.aborted;
      const gone = this.#waiting.splice(0, isOver ? Infinity : batch.length);
      if (isWritten) this.#sayDropped();
      else this.#drop(gone.length, droppedIn(gone));
    }
    this.#work = undefined;
  }

  async #persist(batch: readonly AuditEvent[]): Promise<boolean> {
    const { clock, report } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const fault = await this.#try(batch);
      if (!fault) return true;
      if (attempt >= MAX_TRIES || this.#closing.signal.aborted) {
        const { error } = fault;
        const what = 'the audit sink failed: these events are lost, and counted';
        report(what, { error, events: batch.length });
        return false;
      }
      await pause(clock, delayFor(pauses, { attempt }), this.#closing.signal);
    }
  }

  /** After a timeout the events may be written all the same, and then twice: their numbers show it. */
  async #try(batch: readonly AuditEvent[]): Promise<{ error: unknown } | undefined> {
    const { clock, sink } = this.#options;
    if (this.#hung.size >= MAX_HUNG) return { error: noAnswer() };
    let timer: unknown;
    const late = new Promise<'late'>((resolve) => {
      timer = clock.setTimer(() => resolve('late'), TIMEOUT_MS);
    });
    // In a function: a sink may throw at once.
    const writing = (async () => sink?.write(batch))();
    try {
      if ((await Promise.race([writing, late])) !== 'late') return undefined;
    } catch (error) {
      return { error };
    } finally {
      clock.clearTimer(timer);
    }
    const over = () => void this.#hung.delete(hung);
    // Its events are counted as lost already, whatever it says in the end.
    const hung: Promise<void> = writing.then(over, over);
    this.#hung.add(hung);
    return { error: noAnswer() };
  }

  #drop(count: number, unsaid = 0): void {
    this.dropped += count;
    this.#unsaid += count + unsaid;
    // A registration may be among them.
    this.#registered.clear();
  }

  /** In the trail itself, once the sink works again. */
  #sayDropped(): void {
    if (this.#unsaid === 0) return;
    const count = this.#unsaid;
    this.#unsaid = 0;
    this.write({ event_type: DROPPED, count });
  }
}

/** What was said to be dropped must be said again when the saying itself is lost. */
function droppedIn(events: readonly AuditEvent[]): number {
  let count = 0;
  for (const event of events) if (event.event_type === DROPPED) count += event['count'] as number;
  return count;
}

function noAnswer(): Error {
  return new Error(`The audit sink did not answer within ${TIMEOUT_MS} ms.`);
}
