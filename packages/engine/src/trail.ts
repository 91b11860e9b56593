import type { Host } from './host.ts';
import type { AuditEvent, AuditSink } from './ports/audit.ts';

const MAX_WAITING = 10_000;
const MAX_BATCH = 1000;

/**
 * Hands events to the audit sink, in batches, beside the work and never in its way. What a sink cannot take is
 * counted and said, never dropped in silence.
 */
export class Trail {
  readonly #sink: AuditSink | undefined;
  readonly #host: Host;
  readonly #instance: string;
  #waiting: AuditEvent[] = [];
  #work: Promise<void> | undefined;
  #sequence = 0;
  dropped = 0;

  constructor(sink: AuditSink | undefined, host: Host, instance: string) {
    this.#sink = sink;
    this.#host = host;
    this.#instance = instance;
  }

  get isOn(): boolean {
    return this.#sink !== undefined;
  }

  write(eventType: string, facts: Readonly<Record<string, unknown>>): void {
    if (!this.#sink) return;
    // Dropped or not, it has its number: a gap shows what is missing.
    this.#sequence += 1;
    if (this.#waiting.length >= MAX_WAITING) {
      if (this.dropped === 0)
        this.#host.log.error(
          {},
          'the audit sink is too slow or away: events are dropped, and counted',
        );
      this.dropped += 1;
      return;
    }
    this.#waiting.push({
      event_type: eventType,
      timestamp: new Date(this.#host.clock.now()).toISOString(),
      instance: this.#instance,
      sequence: this.#sequence,
      ...facts,
    });
    this.#work ??= this.#flush();
  }

  async close(): Promise<void> {
    while (this.#work) await this.#work;
    await this.#sink?.close?.();
  }

  async #flush(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#host.defer(resolve);
    });
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, MAX_BATCH);
      try {
        await this.#sink?.write(batch);
      } catch (error) {
        this.dropped += batch.length;
        this.#host.log.error(
          { err: error, events: batch.length },
          'the audit sink failed: these events are lost, and counted',
        );
      }
      this.#waiting.splice(0, batch.length);
    }
    this.#work = undefined;
  }
}
