import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { HeaderPair } from 'redrive/internal';

/** A response as Fastify is about to send it. */
interface Outgoing {
  status: number;
  headers: HeaderPair[];
  payload: unknown;
}

/** Reads what was handed to `reply.send`. A `Response` is taken apart, since its body can be read only once. */
export function outgoing(reply: FastifyReply, given: unknown): Outgoing {
  const payload = isResponse(given) ? takenApart(reply, given) : given;
  const headers = Object.entries(reply.getHeaders()).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): HeaderPair => [name, String(one)]),
  );
  return { status: reply.statusCode, headers, payload };
}

/** A body that was read to its end, or why it was not; and what is left to send. */
type PayloadReading = { body: Buffer; rest: unknown } | { body?: never; rest: unknown };

/** Reads a payload up to the limit. */
export async function readPayload(payload: unknown, maxBytes: number): Promise<PayloadReading> {
  if (payload === undefined || payload === null) return { body: Buffer.alloc(0), rest: payload };
  if (typeof payload === 'string' || payload instanceof Uint8Array) {
    const body = Buffer.from(payload as string);
    return body.length > maxBytes ? { rest: payload } : { body, rest: payload };
  }
  // Whatever else it is, Fastify says what it thinks of it.
  if (!isStream(payload)) return { rest: payload };
  const pieces: Buffer[] = [];
  let length = 0;
  const reader = payload[Symbol.asyncIterator]();
  for (;;) {
    const next = await reader.next();
    if (next.done) {
      const body = Buffer.concat(pieces);
      return { body, rest: body };
    }
    const piece = Buffer.from(next.value as Uint8Array);
    pieces.push(piece);
    length += piece.length;
    if (length > maxBytes) {
      return { rest: Readable.from(joined(pieces, reader), { objectMode: false }) };
    }
  }
}

async function* joined(
  read: readonly Buffer[],
  reader: AsyncIterator<Uint8Array | string>,
): AsyncGenerator<Uint8Array | string> {
  try {
    yield* read;
    yield* { [Symbol.asyncIterator]: () => reader };
  } finally {
    // A client that goes away ends this early, and with it what it reads from.
    await reader.return?.();
  }
}

function takenApart(reply: FastifyReply, response: Response): unknown {
  void reply.code(response.status);
  for (const [name, value] of response.headers) void reply.header(name, value);
  // Not undefined, which would leave the response to Fastify once more.
  return response.body;
}

function isStream(payload: unknown): payload is AsyncIterable<Uint8Array | string> {
  return Symbol.asyncIterator in Object(payload);
}

function isResponse(value: unknown): value is Response {
  return Object.prototype.toString.call(value) === '[object Response]';
}
