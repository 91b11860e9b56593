/**
 * A message as amqplib takes it, or why the broker would never take it. Pure. Whatever would close the channel, and with it
 * fail all that is on its way there, has to be found here.
 */
import type { Options } from 'amqplib';
import { type Impossible, impossible } from '../../broker/answers.ts';
import type { Publication } from '../../ports/broker.ts';
import { amqpOf, isNeverCarried, MARKER, texts, wholes } from './carry.ts';
import { bytesOf, faultOf, isLong, type Tagged } from './tagged.ts';
import { writableNumber, writableOf } from './write-table.ts';

export interface WireLimits {
  /** The largest frame that both sides agreed on: all properties have to fit into one. */
  frameBytes: number;
  /** The largest message that the broker takes, once it has said so. */
  messageBytes: number;
}

export interface Ready {
  readonly outcome: 'ready';
  readonly properties: Options.Publish;
  readonly headers: Map<string, unknown>;
}

/** amqplib encodes headers in a buffer of 64 KiB, their length included. */
const MAX_TABLE_BYTES = 64 * 1024 - 4;
/** Of a frame with properties: all that is not text or header. */
const FRAME_OVERHEAD_BYTES = 64;
const MARKER_BYTES = 1 + MARKER.length + 9;

/** Asks for an answer that only this channel could get: the broker closes it for want of a consumer. */
const DIRECT_REPLY_TO = 'amq.rabbitmq.reply-to';

export function prepare(message: Publication, limits: WireLimits): Ready | Impossible {
  const { address, payload, contentType } = message;
  if (isLong(address) || address === '') {
    return impossible('INVALID_MESSAGE', 'The name of a queue has 1 to 255 bytes.');
  }
  if (payload.length > limits.messageBytes) {
    const most = `The broker takes messages of at most ${limits.messageBytes} bytes`;
    return impossible('MESSAGE_TOO_LARGE', `${most}, and this one has ${payload.length}.`);
  }
  const amqp = amqpOf(message);
  const properties: Options.Publish = { persistent: true, mandatory: true };
  let bytes = FRAME_OVERHEAD_BYTES;
  if (contentType !== undefined) {
    if (!isShortText(contentType)) return badProperty('contentType');
    properties.contentType = contentType;
    bytes += Buffer.byteLength(contentType);
  }
  for (const name of texts) {
    const value = amqp.properties[name];
    if (value === undefined) continue;
    if (!isShortText(value)) return badProperty(name);
    if (name === 'replyTo' && value === DIRECT_REPLY_TO) return badProperty(name);
    properties[name] = value;
    bytes += Buffer.byteLength(value);
  }
  for (const name of wholes) {
    const value = amqp.properties[name];
    if (value === undefined) continue;
    const most = name === 'priority' ? 255 : Number.MAX_SAFE_INTEGER;
    const isOne =
      Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= most;
    if (!isOne) return badProperty(name);
    properties[name] = value as number;
  }
  return withHeaders(message, amqp.headers, properties, limits.frameBytes - bytes);
}

/** What was carried first, so that what the publisher says stands above it. */
function withHeaders(
  message: Publication,
  carried: Readonly<Record<string, unknown>>,
  properties: Options.Publish,
  frameBytes: number,
): Ready | Impossible {
  const headers = new Map<string, unknown>();
  let bytes = MARKER_BYTES;
  for (const name of Object.keys(carried)) {
    if (isNeverCarried(name) || Object.hasOwn(message.headers, name)) continue;
    const value = carried[name];
    const fault = isLong(name) ? LONG_NAME : faultOf(value);
    if (fault) return badHeader(name, fault);
    headers.set(name, writableOf(value as Tagged));
    bytes += 1 + Buffer.byteLength(name) + bytesOf(value as Tagged);
  }
  for (const name of Object.keys(message.headers)) {
    if (isNeverCarried(name)) continue;
    const value: unknown = message.headers[name];
    if (isLong(name)) return badHeader(name, LONG_NAME);
    bytes += 1 + Buffer.byteLength(name);
    if (typeof value === 'string') {
      headers.set(name, value);
      bytes += 5 + Buffer.byteLength(value);
    } else if (typeof value === 'number') {
      headers.set(name, writableNumber(value));
      bytes += 9;
    } else {
      return badHeader(name, 'is neither a text nor a number');
    }
  }
  const most = Math.min(MAX_TABLE_BYTES, frameBytes);
  if (isRepublished(message) && !headers.has(ORIGIN) && bytes + originBytes(message) <= most) {
    headers.set(ORIGIN, message.address);
  }
  if (bytes <= most) return { outcome: 'ready', properties, headers };
  const sentence = `The headers have ${bytes} bytes, and the connection takes ${most}.`;
  return impossible('HEADERS_TOO_LARGE', sentence);
}

const ORIGIN = 'x-original-queue';

/**
 * A consumer that publishes the message to the dead-letter exchange itself copies the headers, and nothing else there says
 * from which queue it comes. A message to `redrive.oversized` has the mark of another sending, and its own origin.
 */
function isRepublished({ headers }: Publication): boolean {
  return headers['x-retry-scheduler'] === 'true' && headers['x-redrive-source'] === undefined;
}

function originBytes({ address }: Publication): number {
  return 1 + ORIGIN.length + 5 + Buffer.byteLength(address);
}

const LONG_NAME = 'has a name of more than 255 bytes';

function isShortText(value: unknown): value is string {
  return typeof value === 'string' && !isLong(value);
}

function badProperty(name: string): Impossible {
  return impossible('INVALID_MESSAGE', `The property ${name} is none that RabbitMQ takes.`);
}

function badHeader(name: string, fault: string): Impossible {
  return impossible('INVALID_MESSAGE', `The header ${name.slice(0, 80)} ${fault}.`);
}
