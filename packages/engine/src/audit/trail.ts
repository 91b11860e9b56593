import { AuditTrail } from 'redrive/internal';
import type { Host } from '../host.ts';
import { ErasedMessages } from '../erase/erased-messages.ts';
import { EngineError } from '../errors.ts';
import type { AuditOptions, AuditPage, AuditQuery, AuditSink } from '../ports/audit.ts';
import { type TrailSettings, trailSettings } from './trail-options.ts';

/** The engine's trail: core writes it, and the engine reads, prunes and erases it. */
export class Trail extends AuditTrail {
  readonly #settings: TrailSettings;
  readonly #host: Host;
  readonly #erased: ErasedMessages;
  readonly #own: AuditSink | undefined;

  /** `own`: the store's own sink, for where no other is given. */
  constructor(
    audit: boolean | AuditSink | AuditOptions | undefined,
    host: Host,
    instance: string,
    own?: AuditSink,
  ) {
    const settings = trailSettings(audit, own);
    const erased = new ErasedMessages();
    super({
      sink: settings.sink,
      strict: settings.strict,
      instance,
      clock: host.clock,
      defer: host.defer,
      report: (what, { error, events }) => {
        const facts = error === undefined ? {} : { err: error, events };
        host.log.error(facts, what);
      },
      kept: (event, nowMs) => erased.kept(event, nowMs),
    });
    this.#settings = settings;
    this.#own = own;
    this.#host = host;
    this.#erased = erased;
  }

  /** Whether what worked is written too. */
  get hasSuccesses(): boolean {
    return this.#settings.successes;
  }

  /** What was written, the newest first. */
  async read(query: AuditQuery): Promise<AuditPage> {
    const { sink } = this.#settings;
    this.flushSoon();
    if (sink?.read) return sink.read(query);
    const message = sink
      ? 'The sink of the audit trail cannot be read back. Look where it writes to.'
      : 'There is no audit trail: it is off.';
    throw new EngineError('AUDIT_UNREADABLE', message);
  }

  /** Deletes what is past its retention, at most so much at once; answers how much. */
  async prune(limit: number): Promise<number> {
    const { sink, retentionMs } = this.#settings;
    if (retentionMs === undefined) return 0;
    return (await sink?.prune?.(retentionMs, limit)) ?? 0;
  }

  /**
   * Erases the events of a message: those that wait here, those that come later, and those in the sink. Also those in the
   * store's own sink, which may have been used before. False: what was written to the sink stays there. The sink cannot
   * erase, or the trail is strict, so that its events do not name their message.
   */
  async erase(messageId: string): Promise<boolean> {
    const nowMs = this.#host.clock.now();
    this.#erased.add(messageId, nowMs);
    this.rewrite((event) => this.#erased.kept(event, nowMs));
    const { sink, strict } = this.#settings;
    await this.#own?.erase?.(messageId);
    if (sink !== this.#own) await sink?.erase?.(messageId);
    return sink === undefined || (sink.erase !== undefined && !strict);
  }

  /** Writes what waits, as far as the sink takes it, and lets go of the sink. */
  override async close(): Promise<void> {
    await super.close();
    await this.#settings.sink?.close?.();
  }
}
