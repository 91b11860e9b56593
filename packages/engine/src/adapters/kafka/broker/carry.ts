/** What of a record of Kafka travels with its task. Pure. */
import { isOurs } from '../../../broker/own-headers.ts';
import type { TaskContext } from '../../../model/task.ts';
import type { Received } from '../../../ports/broker.ts';

/** In `Received.extra.kafka`. Keys and values are bytes, so they are written in base64. */
export interface KafkaExtra {
  topic: string;
  partition: number;
  offset: number;
  /** When it was written, in ms since the epoch, by the clock that the topic is set to. */
  timestampMs: number;
  /** Absent: it has none. */
  key?: string;
  /** Headers that a text cannot hold: several of one name, bytes that are not UTF-8, null. In their order. */
  headers?: readonly CarriedHeader[];
}

export type CarriedHeader = readonly [name: string, base64: string | null];

/** In `context.extra.kafka`: what a context has no other place for. */
export interface CarriedKafka {
  key?: string;
  headers?: readonly CarriedHeader[];
}

export interface Carried {
  context: TaskContext;
  /** What the headers that are carried take. */
  headerBytes: number;
}

export function kafkaExtraOf({ extra }: Received): KafkaExtra | undefined {
  return extra?.['kafka'] as KafkaExtra | undefined;
}

/** What a record of Kafka leaves to its task. */
export function carriedContext(received: Received): Carried {
  const { key, headers: odd = [] } = kafkaExtraOf(received) ?? {};
  const oddNames = new Set(odd.map(([name]) => name));
  const texts: [string, string][] = [];
  let headerBytes = 0;
  for (const [name, value] of Object.entries(received.headers)) {
    if (isOurs(name) || oddNames.has(name) || isContentType(name)) continue;
    texts.push([name, String(value)]);
    headerBytes += Buffer.byteLength(name) + Buffer.byteLength(String(value));
  }
  const kept = odd.filter(([name]) => !isOurs(name) && !isContentType(name));
  for (const [name, base64] of kept) {
    headerBytes += Buffer.byteLength(name) + (base64 === null ? 0 : (base64.length * 3) / 4);
  }
  const kafka: CarriedKafka = {
    ...(key === undefined ? {} : { key }),
    ...(kept.length > 0 ? { headers: kept } : {}),
  };
  const { contentType } = received;
  const context: TaskContext = {
    ...(texts.length > 0 ? { headers: Object.fromEntries(texts) } : {}),
    ...(contentType === undefined ? {} : { contentType }),
    ...(Object.keys(kafka).length > 0 ? { extra: { kafka } } : {}),
  };
  return { context, headerBytes };
}

export function isContentType(name: string): boolean {
  return /^content-type$/i.test(name);
}
