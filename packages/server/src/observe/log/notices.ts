import type { EngineEvent, InboxEntry } from '@redrive/engine';
import type { Logger } from 'pino';

const MOST = 1000;

/** What an operator should find in the log without being asked: what never worked, and what cannot. */
export class Notices {
  readonly #log: Logger;
  /** Kinds of destinations that nobody here can hand tasks over to, and the setting that would change that. */
  readonly #missing: ReadonlyMap<string, string>;
  /** The lanes that were told of. */
  readonly #told = new Set<string>();

  constructor({ log, missing }: { log: Logger; missing: ReadonlyMap<string, string> }) {
    this.#log = log;
    this.#missing = missing;
  }

  /** A group at once, and then at most once a minute, with its count. */
  entered({ lane, reason, count, fingerprint, id }: InboxEntry): void {
    this.#log.warn({ lane, reason, count, fingerprint, message_id: id }, 'entered the inbox');
  }

  engineEvent(event: EngineEvent): void {
    if (event.type !== 'accepted' || this.#missing.size === 0) return;
    const setting = this.#missing.get(event.lane.slice(0, event.lane.indexOf(':')));
    if (setting === undefined) return;
    if (this.#told.has(event.lane) || this.#told.size >= MOST) return;
    this.#told.add(event.lane);
    this.#log.warn(
      { lane: event.lane },
      `accepted, and waits: there is no broker here. Set ${setting}, and it is delivered.`,
    );
  }
}
