import type { ClientHttp2Stream } from 'node:http2';
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { batchWrites } from './batched-writes.ts';

/** A stream whose writes are done when the test says so. */
function slowStream() {
  const written: string[] = [];
  const done: ((error?: Error) => void)[] = [];
  const target = new Writable({
    write(chunk: Buffer, _encoding, callback) {
      written.push(chunk.toString());
      done.push(callback);
    },
  });
  return { written, done, target, stream: batchWrites(target as unknown as ClientHttp2Stream) };
}

const turn = () =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

describe('batched writes', () => {
  it('of one turn are one write, and each is done at once', async () => {
    const { stream, written } = slowStream();
    let called = 0;
    for (const text of ['a', 'b', 'c']) {
      stream.write(Buffer.from(text), 'binary', () => (called += 1));
    }
    expect([called, written]).toEqual([3, []]);
    await turn();
    expect(written).toEqual(['abc']);
  });

  it('wait for the stream where too many bytes are on their way', async () => {
    const { stream, done } = slowStream();
    let called = 0;
    const large = Buffer.alloc(64 * 1024);
    stream.write(large, 'binary', () => (called += 1));
    await turn();
    expect(called).toBe(0);
    done.shift()!();
    await turn();
    expect(called).toBe(1);
  });

  it('go out before the end, in their order', async () => {
    const { stream, written, done, target } = slowStream();
    stream.write(Buffer.from('a'), 'binary', () => undefined);
    stream.end();
    expect(written).toEqual(['a']);
    done.shift()!();
    await turn();
    expect(target.writableFinished).toBe(true);
  });

  it('tell an error to whoever waits', async () => {
    const { stream, target, done } = slowStream();
    target.on('error', () => undefined);
    const failed = new Promise((resolve) => {
      stream.write(Buffer.alloc(64 * 1024), 'binary', resolve);
    });
    await turn();
    done.shift()!(new Error('cut'));
    expect(await failed).toBeInstanceOf(Error);
  });
});
