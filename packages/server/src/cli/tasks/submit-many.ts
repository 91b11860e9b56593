/** Many tasks, from a file: in batches, each sent again until it is answered, and told line by line what was refused. */
import { randomUUID } from 'node:crypto';
import { isRetryError, type Policy, retry } from 'redrive';
import { parseExactly } from '../../http/reading/exact-json.ts';
import { isReceipts } from '../answers.ts';
import { type Client, ProblemError } from '../client.ts';
import { CommandError, exits } from '../command.ts';
import type { Line } from '../terminal/lines.ts';
import type { Receipts } from '../wire.ts';

/** One request takes so many, and so many bytes: the server's limit is 8 MiB unless set otherwise. */
const BATCH = 100;
const BATCH_BYTES = 4 * 1024 * 1024;
export const MAX_LINE_BYTES = 32 * 1024 * 1024;

/** A server that is away for a moment does not end a long file. */
const patience: Policy = { maxAttempts: 8, base: '500ms', cap: '10s', maxRetryAfter: '1m' };

export interface Tally {
  accepted: number;
  duplicates: number;
  /** Taken, and not retried: they lie in the inbox. */
  failed: number;
  rejected: number;
}

export interface Rejection {
  line: number;
  code: string;
  path?: string;
  message?: string;
}

interface ManyOptions {
  client: Client;
  /** Written into every item, unless it says otherwise itself. */
  defaults: Readonly<Record<string, unknown>>;
  /** Each line is the payload of a task for there; undefined: each line is a task. */
  destination?: string;
  /** Makes the ids of tasks that have none: the same file with the same key is known again. */
  key?: string;
  onRejected: (rejection: Rejection) => void;
  onProgress: (tally: Tally, lines: number) => void;
}

const counted = { accepted: 'accepted', duplicate: 'duplicates', failed: 'failed' } as const;

/** What a batch sends: an item as text, and the line it came from. */
interface Item {
  line: number;
  text: string;
}

export async function submitMany(
  lines: AsyncIterable<Line>,
  options: ManyOptions,
): Promise<Tally & { lines: number }> {
  const batcher = new Batcher(options);
  for await (const line of lines) await batcher.add(line);
  await batcher.flush();
  return { ...batcher.tally, lines: batcher.lines };
}

class Batcher {
  readonly tally: Tally = { accepted: 0, duplicates: 0, failed: 0, rejected: 0 };
  lines = 0;
  readonly #options: ManyOptions;
  readonly #key: string;
  #batch: Item[] = [];
  #bytes = 0;
  #answered = false;

  constructor(options: ManyOptions) {
    this.#options = options;
    this.#key = options.key ?? randomUUID();
  }

  async add(line: Line): Promise<void> {
    this.lines += 1;
    const text = this.#itemOf(line);
    if (text === undefined) return;
    if (this.#batch.length === BATCH || this.#bytes + text.length > BATCH_BYTES) await this.flush();
    this.#batch.push({ line: line.number, text });
    this.#bytes += text.length;
  }

  async flush(): Promise<void> {
    const batch = this.#batch;
    this.#batch = [];
    this.#bytes = 0;
    if (batch.length > 0) await this.#send(batch);
    this.#options.onProgress(this.tally, this.lines);
  }

  #itemOf({ number, text }: Line): string | undefined {
    if (text === undefined) {
      this.#reject({ line: number, code: 'TOO_LARGE', message: 'The line is over 32 MiB.' });
      return undefined;
    }
    let data: unknown;
    try {
      data = parseExactly(text);
    } catch (error) {
      this.#reject({ line: number, code: 'INVALID_JSON', message: (error as Error).message });
      return undefined;
    }
    const { defaults, destination } = this.#options;
    if (destination !== undefined)
      return JSON.stringify({ ...defaults, destination, payload: data });
    if (typeof data !== 'object' || data === null || Array.isArray(data)) {
      const message = 'A line is an object such as {"destination":"queue:orders","payload":{}}.';
      this.#reject({ line: number, code: 'INVALID_ITEM', message });
      return undefined;
    }
    return JSON.stringify({ ...defaults, ...data });
  }

  async #send(batch: readonly Item[]): Promise<void> {
    const body = `{"items":[${batch.map(({ text }) => text).join(',')}]}`;
    // By its first line, so that a batch that is cut in two is known again as well.
    const headers = { 'idempotency-key': `${this.#key}:${batch[0]!.line}` };
    try {
      const { client } = this.#options;
      const answer = await this.#patiently(() => client.post('/api/v1/retries', body, headers));
      this.#answered = true;
      this.#count(batch, client.as(isReceipts, answer));
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      this.#answered = true;
      await this.#refused(batch, error);
    }
  }

  #count(batch: readonly Item[], { accepted = [], rejected = [] }: Partial<Receipts>): void {
    // What another version may say besides is taken all the same.
    for (const { result } of accepted) this.tally[counted[result] ?? 'accepted'] += 1;
    // An item may have several faults: it is rejected once.
    const seen = new Set<number>();
    for (const { index, ...fault } of rejected) {
      const isFirst = !seen.has(index);
      seen.add(index);
      this.#reject({ line: batch[index]?.line ?? 0, ...fault }, isFirst);
    }
  }

  /** Too much at once is sent in halves; what all failed says which and why; anything else ends it. */
  async #refused(batch: readonly Item[], error: ProblemError): Promise<void> {
    const { status, rejected } = error.problem;
    if (rejected !== undefined) {
      this.#count(batch, this.#options.client.as(isReceipts, { accepted: [], rejected }));
    } else if (status === 413 && batch.length > 1) {
      const middle = Math.ceil(batch.length / 2);
      await this.#send(batch.slice(0, middle));
      await this.#send(batch.slice(middle));
    } else if (status === 413) {
      this.#reject({ line: batch[0]!.line, code: error.code, message: error.message });
    } else throw error;
  }

  #reject(rejection: Rejection, isFirst = true): void {
    if (isFirst) this.tally.rejected += 1;
    this.#options.onRejected(rejection);
  }

  async #patiently<T>(send: () => Promise<T>): Promise<T> {
    try {
      return await retry(send, patience, { retryIf: (error) => this.#isPassing(error) });
    } catch (error) {
      throw isRetryError(error) && error.cause instanceof CommandError ? error.cause : error;
    }
  }

  /** A server that never answered is not there: who asks wants to know at once. */
  #isPassing(error: unknown): boolean {
    if (!(error instanceof CommandError) || error.exit !== exits.unavailable) return false;
    return this.#answered || error instanceof ProblemError;
  }
}
