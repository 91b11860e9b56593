/** HTTP as bytes on a socket: what a client may send that no library would, and what comes back. */
import { connect } from 'node:net';

export interface Answer {
  status: number;
  headers: ReadonlyMap<string, string>;
  body: Buffer;
}

/** `nothing`: the connection was closed without a word. `silence`: not even that. */
export type Reply = Answer | 'nothing' | 'silence';

const SILENCE_MS = 20_000;

interface Patience {
  /** After so long without an answer it says that no more will come: it may have promised more than it has. */
  endAfterMs?: number;
}

/** Sends the bytes, and resolves with the first answer. */
export function exchange(
  port: number,
  bytes: Uint8Array,
  { endAfterMs }: Patience = {},
): Promise<Reply> {
  const hasBody = !Buffer.from(bytes.subarray(0, 5)).toString('latin1').startsWith('HEAD ');
  return new Promise((resolve) => {
    let received = Buffer.alloc(0);
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const ending =
      endAfterMs === undefined ? undefined : setTimeout(() => socket.end(), endAfterMs);
    const end = (reply: Reply) => {
      clearTimeout(ending);
      socket.destroy();
      resolve(reply);
    };
    socket.setTimeout(SILENCE_MS, () => end('silence'));
    socket.on('error', () => undefined);
    socket.on('close', () => end(answerIn(received, true, hasBody) ?? 'nothing'));
    socket.on('end', () => end(answerIn(received, true, hasBody) ?? 'nothing'));
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const answer = answerIn(received, false, hasBody);
      if (answer) end(answer);
    });
    socket.write(bytes);
  });
}

/** The first answer; undefined: it is not whole yet. */
function answerIn(received: Buffer, isAll: boolean, hasBody: boolean): Answer | undefined {
  const end = received.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [first = '', ...lines] = received.subarray(0, end).toString('latin1').split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})(?: |$)/.exec(first)?.[1] ?? 0);
  const headers = new Map(
    lines.map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()];
    }),
  );
  const rest = received.subarray(end + 4);
  // Only permission to go on.
  if (status === 100) return answerIn(rest, isAll, hasBody);
  const length = hasBody ? headers.get('content-length') : '0';
  const body = length === undefined ? rest : rest.subarray(0, Number(length));
  // A stream of events has no end.
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true;
  const isWhole = length === undefined ? isAll || isStream : body.length === Number(length);
  return isWhole || isAll ? { status, headers, body } : undefined;
}

export interface Request {
  method: string;
  target: string;
  headers: readonly (readonly [name: string, value: string])[];
  body: Uint8Array;
  /** What the header says of the body's length, where that is not the truth. */
  lengthOff?: number;
}

/** As it goes over the wire, one byte for each character. */
export function bytesOf({ method, target, headers, body, lengthOff = 0 }: Request): Buffer {
  const hasLength = headers.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name));
  const length =
    hasLength || body.length === 0 ? [] : [['content-length', body.length + lengthOff]];
  const lines = [...headers, ...length].map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}
