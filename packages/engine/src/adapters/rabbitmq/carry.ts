/**
 * What of a message travels with its task, and how it stands on the message that goes out again. Pure. What was carried is
 * written as it came, type for type; ours is written anew.
 */
import { isOurs } from '../../broker/own-headers.ts';
import type { Publication, Received } from '../../ports/broker.ts';
import type { TaskContext } from '../../model/task.ts';
import { guessed } from './guess-type.ts';
import { readTable } from './read-table.ts';
import { bytesOf, emptyTable, type TaggedTable } from './tagged.ts';

/** The properties that are carried. What else there is belongs to the message that they came with. */
export const texts = [
  'correlationId',
  'replyTo',
  'type',
  'appId',
  'messageId',
  'contentEncoding',
] as const;
export const wholes = ['timestamp', 'priority'] as const;

type CarriedProperties = Partial<
  Record<(typeof texts)[number], string> & Record<(typeof wholes)[number], number>
>;

/** In `context.extra.amqp`: what is neither text nor content type. */
export interface CarriedAmqp {
  properties?: CarriedProperties;
  headers?: TaggedTable;
}

export interface Carried {
  context: TaskContext;
  /** What the headers that are carried take on the wire. */
  headerBytes: number;
  /** Headers that could not be carried: nested too deep. */
  lost: readonly string[];
}

/** The place of a message in its channel: what the broker hands back can be told by it. */
export const MARKER = 'x-redrive-seq';

/** What a broker's message leaves to its task. */
export function carriedContext(received: Received): Carried {
  const { table, lost } = tableOf(received);
  const headers = emptyTable<string>();
  const others = emptyTable();
  let headerBytes = 0;
  for (const name of Object.keys(table)) {
    if (isNeverCarried(name) || isOurs(name)) continue;
    const value = table[name]!;
    headerBytes += 1 + Buffer.byteLength(name) + bytesOf(value);
    if (typeof value === 'string') headers[name] = value;
    else others[name] = value;
  }
  const properties = propertiesOf(received);
  const amqp: CarriedAmqp = {
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
    ...(Object.keys(others).length > 0 ? { headers: others } : {}),
  };
  const { contentType } = received;
  const context: TaskContext = {
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
    ...(contentType === undefined ? {} : { contentType }),
    ...(Object.keys(amqp).length > 0 ? { extra: { amqp } } : {}),
  };
  return { context, headerBytes, lost };
}

/** What was carried for a message that goes out. It may have been edited, so nothing is known of it. */
export function amqpOf({ extra }: Publication): Record<keyof CarriedAmqp, Record<string, unknown>> {
  const { properties, headers } = Object(extra?.['amqp']) as Record<string, unknown>;
  return { properties: objectOf(properties), headers: objectOf(headers) };
}

/**
 * The broker closes the channel for some, makes copies by some, and some it writes itself: they would be taken for facts of
 * the message that goes out.
 */
export function isNeverCarried(name: string): boolean {
  return never.has(name) || name.startsWith('x-first-death-') || name.startsWith('x-last-death-');
}

const never = new Set(['CC', 'BCC', 'x-delay', 'x-death']);

/** By its bytes where the broker gave them. */
function tableOf({ headers, extra }: Received): { table: TaggedTable; lost: string[] } {
  const bytes = extra?.['table'];
  if (bytes instanceof Uint8Array) return readTable(bytes);
  const table = emptyTable();
  const lost: string[] = [];
  for (const [name, value] of Object.entries(headers)) {
    const tagged = guessed(value);
    if (tagged === undefined) lost.push(name);
    else table[name] = tagged;
  }
  return { table, lost };
}

function propertiesOf({ extra }: Received): CarriedProperties {
  const given = objectOf(extra?.['properties']);
  const properties: CarriedProperties = {};
  for (const name of texts) {
    const value = given[name];
    if (typeof value === 'string') properties[name] = value;
  }
  for (const name of wholes) {
    const value = given[name];
    if (Number.isSafeInteger(value)) properties[name] = value as number;
  }
  return properties;
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
