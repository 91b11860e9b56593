/** Records of a topic as the engine gets them. Pure. */
import { isUtf8 } from 'node:buffer';
import type { Received } from '../../../ports/broker.ts';
import type { FetchedRecord } from '../client/record-batches.ts';
import { type CarriedHeader, isContentType, type KafkaExtra } from './carry.ts';

export function receivedOf(
  { topic, partition }: { topic: string; partition: number },
  record: FetchedRecord,
  tag: unknown,
): Received {
  const { offset, timestampMs, key, value } = record;
  const { headers, odd, contentType } = headersOf(record);
  const kafka: KafkaExtra = {
    topic,
    partition,
    offset,
    timestampMs,
    ...(key === null ? {} : { key: key.toString('base64') }),
    ...(odd.length > 0 ? { headers: odd } : {}),
  };
  return {
    tag,
    payload: value ?? new Uint8Array(),
    headers,
    redelivered: false,
    ...(contentType === undefined ? {} : { contentType }),
    extra: { kafka },
  };
}

export function sizeOf({ key, value, headers }: FetchedRecord): number {
  let bytes = (key?.length ?? 0) + (value?.length ?? 0);
  for (const [name, one] of headers) bytes += (name?.length ?? 0) + (one?.length ?? 0);
  return bytes;
}

/** The first value of each as a text, and all values of those that a text cannot hold. */
function headersOf({ headers: given }: FetchedRecord) {
  const byName = Map.groupBy(given, ([name]) => name?.toString() ?? '');
  const single: [string, string][] = [];
  const odd: CarriedHeader[] = [];
  let contentType: string | undefined;
  for (const [name, entries] of byName) {
    const [, first] = entries[0]!;
    const text = first?.toString() ?? '';
    if (contentType === undefined && isContentType(name)) contentType = text;
    single.push([name, text]);
    if (entries.length === 1 && first && isUtf8(first)) continue;
    for (const [, value] of entries) odd.push([name, value?.toString('base64') ?? null]);
  }
  return { headers: Object.fromEntries(single), odd, contentType };
}
