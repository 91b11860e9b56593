/** Publishes what records have flagged, at least once, and clears the flags after that. */
import type { Failure } from 'redrive';
import { published } from '../model/moves.ts';
import type { NotificationRecord, Publication } from '../model/notification.ts';
import { deliveryOf } from '../model/record.ts';
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

/** More than these are left to the sweeper. */
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
  readonly #works = new Set<Promise<void>>();
  /** A record is written again while they are: by then its flags are still those of before. */
  readonly #underway = new Set<string>();

  constructor(parts: Parts, writer: RecordWriter, sinks: Sinks) {
    this.#parts = parts;
    this.#writer = writer;
    this.#sinks = sinks;
  }

  /** Behind the caller's back: what fails, or is too much, the sweeper does again. */
  publishSoon(changes: Iterable<Changed>): void {
    const wanted = new Map([...changes].flatMap(flaggedIn).map((each) => [keyOf(each), each]));
    const fresh = [...wanted].filter(([key]) => !this.#underway.has(key));
    const taken = fresh.slice(0, MAX_UNDERWAY - this.#underway.size);
    if (taken.length === 0) return;
    for (const [key] of taken) this.#underway.add(key);
    const work = this.#publish(taken.map(([, each]) => each))
      .catch((err: unknown) =>
        this.#parts.host.log.warn({ err }, 'publishing failed; the sweeper publishes again'),
      )
      .finally(() => {
        this.#works.delete(work);
        for (const [key] of taken) this.#underway.delete(key);
      });
    this.#works.add(work);
  }

  /** Waits for what is under way. */
  async settle(): Promise<void> {
    await Promise.all(this.#works);
  }

  /** Each by itself: one that fails holds up no other. Rejects only where the flags cannot be cleared. */
  async #publish(all: readonly Flagged[]): Promise<void> {
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
    const attemptNumber = Math.max(0, (ended.attempt ?? 0) - MAX_ATTEMPTS);
    const page = { deviceId, after: { deviceId, attemptNumber }, limit: MAX_ATTEMPTS };
    const attempts = await this.#parts.repository.attempts(record.id, page);
    return deadLetterOf(record, deviceId, ended, attempts);
  }
}

/** A record that was written, and the devices that it was written for. */
export interface Changed {
  record: NotificationRecord;
  deviceIds: readonly string[];
}

interface Flagged {
  record: NotificationRecord;
  deviceId: string;
  publication: Publication;
}

/** Only of these devices: whoever changed the others publishes what is to be told of them, maybe in another instance. */
function flaggedIn({ record, deviceIds }: Changed): Flagged[] {
  return deviceIds.flatMap((deviceId) =>
    (deliveryOf(record, deviceId)?.unpublished ?? []).map((publication) => ({
      record,
      deviceId,
      publication,
    })),
  );
}

function keyOf({ record, deviceId, publication }: Flagged): string {
  const { to, atMs } = publication;
  return JSON.stringify([record.id, deviceId, to, atMs, to === 'event' ? publication.type : '']);
}
