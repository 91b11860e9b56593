import type { ClientHttp2Stream } from 'node:http2';

type Callback = (error?: Error | null) => void;
type Write = (chunk: Uint8Array, callback: Callback) => boolean;

/** Bytes on their way from which on the transport waits before it hands over more. */
const HIGH_WATER_BYTES = 64 * 1024;

/**
 * Joins the writes of one turn of the event loop into one. The transport writes each message by itself and waits until
 * the system has taken it, which costs more than an evaluation. It is told that a write is done as soon as the bytes are
 * here, unless too many are on their way: then it waits as before.
 */
export function batchWrites(stream: ClientHttp2Stream): ClientHttp2Stream {
  const write = stream.write.bind(stream) as Write;
  const end = stream.end.bind(stream) as (callback?: () => void) => ClientHttp2Stream;
  let chunks: Uint8Array[] = [];
  let waitingBytes = 0;
  let sentBytes = 0;
  let held: Callback[] = [];

  const flush = () => {
    if (chunks.length === 0) return;
    const all = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    chunks = [];
    waitingBytes = 0;
    sentBytes += all.length;
    write(all, (error) => {
      sentBytes -= all.length;
      const callbacks = held;
      held = [];
      for (const callback of callbacks) callback(error);
    });
  };

  const add = (chunk: Uint8Array, _encoding: BufferEncoding, callback: Callback): boolean => {
    // Runs when no promise is left to go on with, so after all answers of this turn.
    if (chunks.length === 0) process.nextTick(flush);
    chunks.push(chunk);
    waitingBytes += chunk.length;
    const isFull = waitingBytes + sentBytes >= HIGH_WATER_BYTES;
    if (isFull) held.push(callback);
    else callback();
    return !isFull;
  };

  return Object.assign(stream, {
    write: add as ClientHttp2Stream['write'],
    end: ((callback?: () => void) => {
      flush();
      return end(callback);
    }) as ClientHttp2Stream['end'],
  });
}
