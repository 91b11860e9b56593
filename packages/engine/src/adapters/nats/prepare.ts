/**
 * A message as the server takes it, or why it never would. Pure. The server closes the connection for a message that is too
 * large, and with it fails all that is on its way: that has to be found here.
 */
import type { MsgHdrs } from '@nats-io/transport-node';
import { type Impossible, impossible } from '../../broker/answers.ts';
import type { Publication } from '../../ports/broker.ts';
import { listsOf } from './carry.ts';
import { headerBytes, isOfServer, writtenName, writtenValue } from './headers.ts';
import { headers as newHeaders } from './library.ts';

export interface Ready {
  readonly outcome: 'ready';
  readonly headers: MsgHdrs | undefined;
  /** With its headers. */
  readonly bytes: number;
}

/** JetStream stores no more of them. */
const MAX_HEADER_BYTES = 65_535;
const MAX_SUBJECT_BYTES = 255;
/** The first line and the empty one at the end. */
const FRAME_BYTES = 'NATS/1.0\r\n\r\n'.length;

export function prepare(message: Publication, maxPayload: number): Ready | Impossible {
  const { address, payload } = message;
  const fault = faultOfSubject(address);
  if (fault) return impossible('INVALID_MESSAGE', fault);
  const headers = newHeaders();
  let bytes = 0;
  for (const [name, value] of headersOf(message)) {
    if (typeof value !== 'string' && typeof value !== 'number') {
      const sentence = `The header ${name.slice(0, 80)} is neither a text nor a number.`;
      return impossible('INVALID_MESSAGE', sentence);
    }
    const [written, text] = [writtenName(name), writtenValue(String(value))];
    headers.append(written, text);
    bytes += headerBytes(written, text);
  }
  if (bytes > 0) bytes += FRAME_BYTES;
  if (bytes > MAX_HEADER_BYTES) {
    const sentence = `The headers have ${bytes} bytes, and NATS takes ${MAX_HEADER_BYTES}.`;
    return impossible('HEADERS_TOO_LARGE', sentence);
  }
  const total = bytes + payload.length;
  if (total > maxPayload) {
    const sentence = `The message has ${total} bytes with its headers, and the server takes ${maxPayload}. Raise max_payload of the server, or send less.`;
    return impossible('MESSAGE_TOO_LARGE', sentence);
  }
  return { outcome: 'ready', headers: bytes > 0 ? headers : undefined, bytes: total };
}

/** What is wrong with a subject to publish to. Those of the server itself would be commands to it. */
function faultOfSubject(subject: string): string | undefined {
  const bytes = Buffer.byteLength(subject);
  if (bytes === 0 || bytes > MAX_SUBJECT_BYTES) {
    return `A subject has 1 to ${MAX_SUBJECT_BYTES} bytes, and this one has ${bytes}.`;
  }
  if (/^(\$|_INBOX\.)/.test(subject)) {
    return `'${subject}' is a subject of the server itself. Use one that does not begin with $ or _INBOX.`;
  }
  const isOne = subject.split('.').every((token) => /^[^\s*>\p{Cc}]+$/u.test(token));
  return isOne
    ? undefined
    : `'${subject}' is not a subject: words without blanks, * or >, with single dots between them.`;
}

/** What was carried first. What the publisher says replaces it. */
function* headersOf(message: Publication): Iterable<[string, unknown]> {
  const { headers, contentType } = message;
  for (const [name, values] of listsOf(message)) {
    if (isOfServer(name) || Object.hasOwn(headers, name)) continue;
    for (const value of values) yield [name, value];
  }
  let hasType = false;
  for (const [name, value] of Object.entries(headers)) {
    if (isOfServer(name)) continue;
    hasType ||= /^content-type$/i.test(name);
    yield [name, value];
  }
  if (contentType !== undefined && !hasType) yield ['Content-Type', contentType];
  const id = uniqueIdOf(message);
  if (id !== undefined) yield ['Nats-Msg-Id', id];
}

/**
 * The same for each sending of one attempt, so that the stream drops a second copy of it: JetStream compares these ids for a
 * while. Another attempt, a replay, other bytes or another subject make another id.
 */
function uniqueIdOf({ address, headers }: Publication): string | undefined {
  if (headers['x-retry-scheduler'] !== 'true') return undefined;
  const parts = ['x-message-id', 'x-redrive-generation', 'x-retry-count', 'x-redrive-body'];
  return [...parts.map((name) => String(headers[name])), address].join('.');
}
