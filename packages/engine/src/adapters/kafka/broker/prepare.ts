/** A message as a record of Kafka, or why it never could be one. Pure. */
import { type Impossible, impossible } from '../../../broker/answers.ts';
import type { Publication } from '../../../ports/broker.ts';
import type { OutRecord } from '../client/producer.ts';
import { isContentType } from './carry.ts';

export function prepare(message: Publication): OutRecord | Impossible {
  const { address, payload, headers, contentType, extra } = message;
  if (!isTopic(address)) {
    const sentence = `'${address.slice(0, 80)}' is not a topic: 1 to 249 letters, digits, dots, dashes and underscores.`;
    return impossible('INVALID_MESSAGE', sentence);
  }
  const { key, headers: odd } = Object(extra?.['kafka']) as { key?: unknown; headers?: unknown };
  if (key !== undefined && typeof key !== 'string') {
    return impossible('INVALID_MESSAGE', 'extra.kafka.key is not a text in base64.');
  }
  const written = new Map<Buffer, Buffer>();
  let bytes = payload.length;
  const write = (name: string, value: Buffer | null) => {
    const nameBytes = Buffer.from(name);
    bytes += nameBytes.length + (value?.length ?? 0);
    // The library writes null as Kafka does, but its types do not say so.
    written.set(nameBytes, value as Buffer);
  };
  let hasType = false;
  for (const entry of [odd ?? []].flat()) {
    const [name, base64] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof name !== 'string' || (typeof base64 !== 'string' && base64 !== null)) {
      return impossible('INVALID_MESSAGE', ODD_HEADERS);
    }
    if (Object.hasOwn(headers, name)) continue;
    write(name, base64 === null ? null : Buffer.from(base64, 'base64'));
  }
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string' && typeof value !== 'number') {
      const sentence = `The header ${name.slice(0, 80)} is neither a text nor a number.`;
      return impossible('INVALID_MESSAGE', sentence);
    }
    hasType ||= isContentType(name);
    write(name, Buffer.from(String(value)));
  }
  if (contentType !== undefined && !hasType) write('content-type', Buffer.from(contentType));
  const keyBytes = key === undefined ? null : Buffer.from(key, 'base64');
  return {
    topic: address,
    key: keyBytes,
    value: Buffer.from(payload.buffer, payload.byteOffset, payload.length),
    headers: written.size > 0 ? written : undefined,
    bytes: bytes + (keyBytes?.length ?? 0),
  };
}

const ODD_HEADERS = 'extra.kafka.headers is not a list of [name, base64 or null].';

function isTopic(name: string): boolean {
  return /^[\w.-]{1,249}$/.test(name) && name !== '.' && name !== '..';
}
