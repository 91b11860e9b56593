import { describe, expect, it } from 'vitest';
import type { Received } from '../../ports/broker.ts';
import { Held } from './held.ts';

function received(sequence: number): Received {
  return { tag: { sequence }, payload: Buffer.from('x'), headers: {}, redelivered: false };
}

/** One that is handed over. */
function handed(held: Held, sequence: number, reply = `reply-${sequence}`): Received {
  const message = received(sequence);
  held.complete(held.add(message, reply, 10), 10);
  held.take();
  return message;
}

describe('what a consumer holds', () => {
  it('is settled once, with the word going where the server last said', () => {
    const held = new Held();
    const message = handed(held, 1);
    expect(held.renew(1, 'newer')).toBe(true);
    expect([held.settle(message), held.settle(message)]).toEqual(['newer', undefined]);
    expect([held.size, held.bytes, held.hasHanded]).toEqual([0, 0, false]);
  });

  it('is not settled by a word about an earlier delivery of the same message', () => {
    const held = new Held();
    const first = handed(held, 1);
    held.settle(first);
    const second = handed(held, 1, 'second');
    expect(held.settle(first)).toBeUndefined();
    expect(held.settle(second)).toBe('second');
  });

  it('is not settled before it is handed over', () => {
    const held = new Held();
    const message = received(1);
    held.complete(held.add(message, 'reply', 10), 10);
    expect(held.settle(message)).toBeUndefined();
    expect(held.take()).toEqual([message]);
    expect(held.take()).toEqual([]);
    expect(held.settle(message)).toBe('reply');
  });

  it('counts the bytes that a message has when it is complete', () => {
    const held = new Held();
    const holding = held.add(received(1), 'reply', 10);
    expect(held.bytes).toBe(10);
    held.complete(holding, 500);
    expect([held.size, held.bytes]).toEqual([1, 500]);
  });

  it('is forgotten when the consumer stops, also what completes after that', () => {
    const held = new Held();
    const holding = held.add(received(1), 'one', 10);
    const message = handed(held, 2, 'two');
    expect(held.replies()).toEqual(['one', 'two']);
    held.clear();
    held.complete(holding, 20);
    expect([held.take(), held.bytes, held.settle(message)]).toEqual([[], 0, undefined]);
  });

  it('does not know a message that it does not have', () => {
    expect(new Held().renew(1, 'reply')).toBe(false);
  });
});
