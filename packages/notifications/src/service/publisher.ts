/** Publishes what records have flagged, at least once, and clears the flags after that. */
import type { Failure } from 'redrive';
import { published } from '../model/moves.ts';
import type { NotificationRecord, Publication } from '../model/notification.ts';
import {
  type DeadLetter,
  deadLetterOf,
  type Ended,
  eventOf,
  type NotificationEvent,
} from './documents.ts';
import { inTime } from './in-time.ts';
import type { Parts } from './parts.ts';
import type { RecordWriter } from './record-writer.ts';

/** An item for operators. */
export interface FailedDeliveryItem {
  letter: DeadLetter;
  failure: Failure;
}

/** Where things are published. Each resolves when it is durable there, and may be called again for the same. */
export interface Sinks {
  deadLetter?: (letter: DeadLetter) => Promise<void>;
  inbox?: (item: FailedDeliveryItem) => Promise<void>;
  event?: (event: NotificationEvent) => Promise<void>;
}

/** Records. More than these are left to the sweeper. */
const MAX_UNDERWAY = 2000;
const PUBLISH_TIMEOUT_MS = 10_000;
const MAX_ATTEMPTS = 100;

export function publicationsOf({
  deadLetter,
  inbox,
  event,
  publishedElsewhere = [],
}: Sinks & { publishedElsewhere?: readonly Publication['to'][] }): ReadonlySet<Publication['to']> {
  const all = new Set(publishedElsewhere);
  if (deadLetter) all.add('dead_letter');
  if (inbox) all.add('inbox');
  if (event) all.add('event');
  return all;
}

export class Publisher {
  readonly #parts: Parts;
  readonly #writer: RecordWriter;
  readonly #sinks: Sinks;
  readonly #underway = new Set<Promise<void>>();
  #count = 0;

  constructor(parts: Parts, writer: RecordWriter, sinks: Sinks) {
    this.#parts = parts;
    this.#writer = writer;
    this.#sinks = sinks;
  }

  /** Behind the caller's back: what fails, or is too much, the sweeper does again. */
  publishSoon(records: Iterable<NotificationRecord>): void {
    const flagged = [...records].filter(isFlagged).slice(0, MAX_UNDERWAY - this.#count);
    if (flagged.length === 0) return;
    this.#count += flagged.length;
    const work = this.publish(flagged)
      .catch((err: unknown) =>
        this.#parts.host.log.warn({ err }, 'publishing failed; the sweeper publishes again'),
      )
      .finally(() => {
        this.#underway.delete(work);
        this.#count -= flagged.length;
      });
    this.#underway.add(work);
  }

  /** Waits for what is under way. */
  async settle(): Promise<void> {
    await Promise.all(this.#underway);
  }

  /** Each by itself: one that fails holds up no other. Rejects only where the flags cannot be cleared. */
  async publish(records: readonly NotificationRecord[]): Promise<void> {
    const all = records.flatMap((record) =>
      Object.entries(record.deliveries).flatMap(([deviceId, { unpublished }]) =>
        unpublished.map((publication) => ({ record, deviceId, publication })),
      ),
    );
    const done = await Promise.all(all.map((each) => this.#send(each)));
    const sent = all.filter((_, i) => done[i]);
    const nowMs = this.#parts.host.clock.now();
    await this.#writer.apply(
      sent.map(({ record: { id }, deviceId, publication }) => ({
        id,
        apply: (record: NotificationRecord | undefined) =>
          record
            ? published(record, deviceId, [publication], nowMs, this.#parts.rules)
            : { result: false },
      })),
    );
  }

  async #send({ record, deviceId, publication }: Flagged): Promise<boolean> {
    const { host, tell } = this.#parts;
    try {
      // A sink that never answers must not keep its record for ever.
      const work = this.#deliver(record, deviceId, publication);
      const ok = await inTime(host.clock, PUBLISH_TIMEOUT_MS, publication.to, work);
      if (ok) tell({ type: 'published', to: publication.to, ok });
      return ok;
    } catch (err) {
      host.log.warn(
        { err, to: publication.to, notification: record.id },
        'a publication failed, and is tried again',
      );
      tell({ type: 'published', to: publication.to, ok: false });
      return false;
    }
  }

  /** False: there is nowhere to publish it to now. It stays flagged until there is. */
  async #deliver(
    record: NotificationRecord,
    deviceId: string,
    publication: Publication,
  ): Promise<boolean> {
    const { deadLetter, inbox, event } = this.#sinks;
    if (publication.to === 'event') {
      if (!event) return false;
      await event(eventOf(record, publication));
      return true;
    }
    const sink = publication.to === 'inbox' ? inbox : deadLetter;
    if (!sink) return false;
    const letter = await this.#letterOf(record, deviceId, publication);
    const failure = record.deliveries[deviceId]?.failure ?? { class: 'unknown' };
    if (publication.to === 'inbox') await inbox!({ letter, failure });
    else await deadLetter!(letter);
    return true;
  }

  async #letterOf(record: NotificationRecord, deviceId: string, ended: Ended): Promise<DeadLetter> {
    const page = { deviceId, limit: MAX_ATTEMPTS };
    const attempts = await this.#parts.repository.attempts(record.id, page);
    return deadLetterOf(record, deviceId, ended, attempts);
  }
}

interface Flagged {
  record: NotificationRecord;
  deviceId: string;
  publication: Publication;
}

function isFlagged({ deliveries }: NotificationRecord): boolean {
  return Object.values(deliveries).some(({ unpublished }) => unpublished.length > 0);
}
