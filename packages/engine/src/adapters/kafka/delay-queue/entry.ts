/** An entry as a record: its id is the key, its payload the value, and one header has the rest. Pure. */
import { MAX_DELAY_MS, MAX_ID_LENGTH, MAX_PAYLOAD_BYTES } from '../../../ports/delay-queue.ts';
import type { FetchedRecord } from '../client/record-batches.ts';
import type { OutRecord } from '../client/producer.ts';

/** When an entry is due: so many ms after its record was appended, or at a time of the brokers. */
type When = { readonly afterMs: number } | { readonly atMs: number };

export interface ReadEntry {
  /** In ms since the epoch, by the clock of the broker that appended it first. */
  readonly dueMs: number;
  /** True: `dueMs` counts from the append of this very record. */
  readonly isFirst: boolean;
}

/**
 * Version, kind, then eight bytes of ms, then the key in UTF-8 unless it is the id.
 */
const HEADER = Buffer.from('redrive');
const VERSION = 1;
const AFTER = 0;
const AT = 1;
const FIXED_BYTES = 10;
/** A character of an id has at most three bytes. */
const MAX_NAME_BYTES = MAX_ID_LENGTH * 3;

export function recordOf(
  topic: string,
  entry: { readonly id: Buffer; readonly key: Buffer | undefined; readonly payload: Buffer },
  when: When,
): OutRecord {
  const { id, key, payload } = entry;
  const value = Buffer.allocUnsafe(FIXED_BYTES + (key?.length ?? 0));
  value[0] = VERSION;
  value[1] = 'afterMs' in when ? AFTER : AT;
  value.writeDoubleBE('afterMs' in when ? when.afterMs : when.atMs, 2);
  key?.copy(value, FIXED_BYTES);
  return {
    topic,
    partition: 'any',
    key: id,
    value: payload,
    headers: new Map([[HEADER, value]]),
    bytes: id.length + payload.length + HEADER.length + value.length,
  };
}

/** A record of ours that goes on to another topic. */
export function onward(topic: string, record: FetchedRecord, when: When): OutRecord {
  const { key: id, value: payload } = record;
  return recordOf(topic, { id: id!, key: keyBytes(record), payload: payload! }, when);
}

/** What is wrong with a record that is not ours is said in a sentence. */
export function readEntry({ key, value, headers, timestampMs }: FetchedRecord): ReadEntry | string {
  if (headers.length !== 1) return `It has ${headers.length} headers instead of one.`;
  const [name, meta] = headers[0]!;
  if (!name?.equals(HEADER)) return 'It has no header "redrive".';
  if (!meta || meta.length < FIXED_BYTES || meta.length > FIXED_BYTES + MAX_NAME_BYTES) {
    return `Its header "redrive" has ${meta?.length ?? 'no'} bytes.`;
  }
  if (meta[0] !== VERSION) return `Its version is ${meta[0]}, and this program reads ${VERSION}.`;
  if (meta[1] !== AFTER && meta[1] !== AT) return `Its kind is ${meta[1]}.`;
  if (!key || key.length === 0 || key.length > MAX_NAME_BYTES) return 'It has no id as its key.';
  if (!value || value.length > MAX_PAYLOAD_BYTES)
    return `Its payload has ${value?.length ?? 'no'} bytes.`;
  const ms = meta.readDoubleBE(2);
  const isFirst = meta[1] === AFTER;
  const dueMs = isFirst ? timestampMs + ms : ms;
  // Also where it is no number.
  if (!(dueMs - timestampMs <= MAX_DELAY_MS) || (isFirst && ms < 0)) {
    return `Its time is ${ms} ms, which is past the longest delay.`;
  }
  return { dueMs, isFirst };
}

/** For whom the entry is, of a record that was read. */
export function namesOf(record: FetchedRecord): { id: string; key: string } {
  const id = record.key!.toString();
  return { id, key: keyBytes(record)?.toString() ?? id };
}

function keyBytes({ headers }: FetchedRecord): Buffer | undefined {
  const meta = headers[0]![1]!;
  return meta.length > FIXED_BYTES ? meta.subarray(FIXED_BYTES) : undefined;
}
