import { delayFor, type Policy } from 'redrive';
import type { Host } from '../host.ts';
import { pause, within } from '../patience.ts';
import type { Broker, Publication, Published, Received } from '../ports/broker.ts';
import { publish } from '../dispatch/publish.ts';

/** The largest message that is read. No larger one is stored, not even in the inbox. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

const PUBLISH_MS = 60_000;
/** After so many failures the source stops. The first one is usual: the queue is made only when it is needed. */
const MAX_TRIES = 4;
const pauses: Policy = { base: '100ms', cap: '30s', jitter: 'equal' };

interface OversizedParts {
  broker: Broker;
  source: string;
  /** The message that is published in its place; undefined: nobody has said where to. */
  publicationOf: ((message: Received) => Publication) | undefined;
  host: Host;
  until: AbortSignal;
  acknowledge: (message: Received) => Promise<void>;
  /** A message could not be published in several tries. */
  stuck: () => void;
}

/**
 * Messages that are too large to be stored. Each is published whole to a queue of its own, and acknowledged once that is
 * confirmed. One at a time, since each is in memory more than once while it is sent. One that cannot be published is kept
 * unacknowledged and tried again: given back, it would come again at once, and some queues drop what came too often.
 */
export class OversizedMessages {
  readonly #parts: OversizedParts;
  #waiting: Received[] = [];
  #work: Promise<void> | undefined;
  /** The one that could not be published so far, and why. */
  #stuck: { message: Received; why: string } | undefined;

  constructor(parts: OversizedParts) {
    this.#parts = parts;
  }

  /** Why a message cannot be published, as long as it is here. */
  get why(): string | undefined {
    return this.#stuck?.message.gone ? undefined : this.#stuck?.why;
  }

  add(message: Received): void {
    // Those of a channel that is gone come again.
    this.#waiting = this.#waiting.filter(({ gone }) => !gone);
    this.#waiting.push(message);
  }

  /** Works on what was added. */
  run(): void {
    this.#work ??= this.#publishAll().finally(() => (this.#work = undefined));
  }

  /** Resolves soon after `until` was aborted. */
  async ended(): Promise<void> {
    await this.#work;
  }

  async #publishAll(): Promise<void> {
    const { until } = this.#parts;
    for (;;) {
      const message = until.aborted ? undefined : this.#waiting.shift();
      if (!message) return;
      await this.#persist(message);
      this.#stuck = undefined;
    }
  }

  /** Until it is published, or is not ours any more. */
  async #persist(message: Received): Promise<void> {
    const { host, source, until, acknowledge } = this.#parts;
    const bytes = message.payload.length;
    for (let attempt = 1; !until.aborted && !message.gone; attempt++) {
      const { queue, why } = await this.#publish(message);
      if (why === undefined) {
        const sentence = `a message was too large to be stored: it was published to ${queue}`;
        host.log.warn({ source, bytes, queue }, sentence);
        await acknowledge(message).catch((error: unknown) =>
          host.log.warn({ err: error, source }, 'not acknowledged: it will come again'),
        );
        return;
      }
      if (until.aborted || message.gone) return;
      host.log.warn({ source, bytes, queue, attempt, why }, 'a large message was not published');
      if (attempt >= MAX_TRIES) this.#stop(message, why);
      const delayMs = delayFor(pauses, { attempt, random: host.random() });
      await pause(host, delayMs, until);
    }
  }

  #stop(message: Received, why: string): void {
    const { host, source, stuck } = this.#parts;
    const bytes = message.payload.length;
    const isNew = this.#stuck === undefined;
    this.#stuck = {
      message,
      why: `A message of ${bytes} bytes is too large to be stored (${MAX_MESSAGE_BYTES} at most). ${why} Nothing more is read from ${source} until that works; it is tried again.`,
    };
    if (!isNew) return;
    host.log.error(
      { source, bytes, why },
      'a source has stopped: a large message could not be published',
    );
    stuck();
  }

  /** Where to, and why not. */
  async #publish(message: Received): Promise<{ queue?: string; why?: string }> {
    const { publicationOf, source, host } = this.#parts;
    if (!publicationOf) return { why: 'The source has no `oversized`, which says where it goes.' };
    let publication: Publication;
    try {
      publication = publicationOf(message);
    } catch (error) {
      return { why: `\`oversized\` has thrown: ${String(error)}.` };
    }
    const { address: queue } = publication;
    let published = await this.#send(publication);
    if (published?.outcome === 'impossible') {
      const { failure } = published;
      const again = await this.#send(bareOf(publication));
      if (again?.outcome === 'confirmed') {
        const sentence = 'a large message was published without its own headers and properties';
        host.log.error({ source, queue, why: failure.message }, sentence);
        published = again;
      }
    }
    return { queue, ...(published ? reasonOf(published, queue) : { why: 'No answer.' }) };
  }

  /** Undefined: the engine stops before there is an answer. */
  async #send(publication: Publication): Promise<Published | undefined> {
    const { broker, host, until } = this.#parts;
    let published: Published | undefined;
    // Over a channel of its own: the broker may close it for a message of this size.
    const options = { timeoutMs: PUBLISH_MS, alone: true };
    const answer = publish(broker, [publication], options)[0]!.then((one) => (published = one));
    await within(host, 2 * PUBLISH_MS, answer, until);
    return published;
  }
}

function reasonOf(published: Published, queue: string): { why?: string } {
  switch (published.outcome) {
    case 'confirmed':
      return {};
    case 'unroutable':
      return {
        why:
          published.failure?.message ??
          `Queue ${queue} does not exist, and could not be created. Create it.`,
      };
    case 'impossible':
    case 'refused':
    case 'unknown':
    case 'lost':
    case 'away': {
      const { code, message } = published.failure;
      const why = message ?? code ?? published.outcome;
      return { why: `It was not published to ${queue}: ${why}${why.endsWith('.') ? '' : '.'}` };
    }
  }
}

/** Without what came with the message, for a broker that does not take that. */
function bareOf({ address, payload, headers }: Publication): Publication {
  const ours = Object.entries(headers).filter(([name]) => name.startsWith('x-redrive-'));
  return { address, payload, headers: Object.fromEntries(ours) };
}
