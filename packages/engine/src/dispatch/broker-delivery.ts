import { hash } from 'node:crypto';
import type { Host } from '../host.ts';
import type { Broker, Publication, Published } from '../ports/broker.ts';
import type { Delivery, Outcome, Run } from '../ports/delivery.ts';
import { publish } from './publish.ts';
import type { Task, TaskContext } from '../model/task.ts';

/** A confirm may take so much of the time of its delivery: an answer, even that there is none, is better than its end. */
const CONFIRM_SHARE = 0.8;

interface Waiting {
  publication: Publication;
  timeoutMs: number;
  answer: (published: Promise<Published>) => void;
}

/** Hands tasks over to a broker: those of one turn together, each answered by itself. */
export class BrokerDelivery implements Delivery {
  readonly kind: string;
  readonly handsOver = true;
  readonly #broker: Broker;
  readonly #host: Host;
  #waiting: Waiting[] = [];

  constructor(broker: Broker, host: Host) {
    this.kind = broker.kind;
    this.#broker = broker;
    this.#host = host;
  }

  async deliver(task: Task, run: Run): Promise<Outcome> {
    const publication = publicationOf(task);
    if (!publication) return oversized;
    const timeoutMs = Math.ceil(run.remainingMs * CONFIRM_SHARE);
    // One that nobody confirmed before may be what broke something: it goes alone.
    const published =
      task.uncounted > 0
        ? publish(this.#broker, [publication], { timeoutMs, alone: true })[0]!
        : this.#together(publication, timeoutMs);
    return outcomeOf(await published, task);
  }

  #together(publication: Publication, timeoutMs: number): Promise<Published> {
    return new Promise((answer) => {
      this.#waiting.push({ publication, timeoutMs, answer });
      if (this.#waiting.length === 1) this.#host.defer(() => this.#flush());
    });
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    // Nearly always one: the time limit is that of the lane.
    for (const [timeoutMs, some] of Map.groupBy(waiting, (one) => one.timeoutMs)) {
      const publications = some.map(({ publication }) => publication);
      const answers = publish(this.#broker, publications, { timeoutMs });
      for (const [i, { answer }] of some.entries()) answer(answers[i]!);
    }
  }
}

function outcomeOf(published: Published, { destination }: Task): Outcome {
  switch (published.outcome) {
    case 'confirmed':
      return { type: 'taken' };
    case 'unroutable': {
      const message = `There is no ${destination.kind} named '${destination.address}'. Create it, or replay the message to another one.`;
      const { failure = { class: 'technical', code: 'UNROUTABLE', message } } = published;
      return { type: 'unroutable', failure };
    }
    case 'unknown':
      return { type: 'refused', failure: published.failure };
    case 'impossible':
    case 'refused':
    case 'lost':
    case 'away':
      return { type: published.outcome, failure: published.failure };
  }
}

/** Tells a message from another one that only carries its headers: consumers pass them on. */
export function bodyMark(payload: Uint8Array): string {
  return hash('sha1', payload, 'base64url').slice(0, 16);
}

const MAX_ERROR_BYTES = 1024;
const MAX_HEADER_BYTES = 32 * 1024;
/** Of a header beside its name and its text. */
const HEADER_BYTES = 6;

const oversized: Outcome = Object.freeze({
  type: 'oversized',
  failure: Object.freeze({
    class: 'technical',
    code: 'HEADERS_TOO_LARGE',
    message: `The headers are over ${MAX_HEADER_BYTES} bytes. Edit them, and replay.`,
  }),
});

/** The message as it goes out again, with what a consumer needs to tell a retry and a duplicate; undefined: too many headers. */
function publicationOf(task: Task): Publication | undefined {
  const { context, failure } = task;
  const headers: Record<string, string | number> = {
    ...context?.headers,
    ...(context?.traceparent ? { traceparent: context.traceparent } : {}),
    'x-retry-count': task.attempt,
    'x-retry-scheduler': 'true',
    'x-message-id': task.messageId,
    'x-redrive-generation': task.generation,
    'x-redrive-body': bodyMark(task.payload),
  };
  const error = failure?.message ?? failure?.code;
  const most = roomForError(headers, context);
  if (most === undefined) return undefined;
  if (error && most > 0) headers['x-original-error'] = cut(error, most);
  return {
    address: task.destination.address,
    payload: task.payload,
    ...(context?.contentType ? { contentType: context.contentType } : {}),
    ...(context?.extra ? { extra: context.extra } : {}),
    headers,
  };
}

/** Bytes that are left for the error, since ours gives way before theirs; undefined: theirs alone are too many. */
function roomForError(
  headers: Readonly<Record<string, string | number>>,
  context: TaskContext | undefined,
): number | undefined {
  // Ours alone never fill it.
  if (!context?.headers && !context?.extra && !context?.traceparent) return MAX_ERROR_BYTES;
  const carried = context.extra ? JSON.stringify(context.extra).length : 0;
  const left = MAX_HEADER_BYTES - bytesOf(headers) - carried;
  if (left < 0) return undefined;
  return Math.min(MAX_ERROR_BYTES, left - 'x-original-error'.length - HEADER_BYTES);
}

function bytesOf(headers: Readonly<Record<string, string | number>>): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    bytes += HEADER_BYTES + Buffer.byteLength(name) + Buffer.byteLength(String(value));
  }
  return bytes;
}

function cut(text: string, maxBytes: number): string {
  // No character has more than three bytes per unit.
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  return bytes
    .subarray(0, maxBytes)
    .toString()
    .replace(/\uFFFD+$/, '');
}
