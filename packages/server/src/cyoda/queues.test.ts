import { describe, expect, it } from 'vitest';
import { cut } from './cut.ts';
import { Fifo } from './fifo.ts';
import { Outgoing } from './outgoing.ts';
import { baseUrlOf } from './connection.ts';
import { WaitingRoom } from './waiting.ts';

describe('the outgoing queue', () => {
  const sent = async (outgoing: Outgoing<string>, count: number) => {
    const iterator = outgoing[Symbol.asyncIterator]();
    const found: string[] = [];
    for (let n = 0; n < count; n++) found.push((await iterator.next()).value as string);
    return found;
  };

  it('gives acknowledgements before answers, each in its order', async () => {
    const outgoing = new Outgoing<string>(() => undefined);
    for (const answer of ['a1', 'a2']) outgoing.answer(answer);
    for (const ack of ['k1', 'k2']) outgoing.ack(ack);
    expect(outgoing.size).toBe(4);
    expect(await sent(outgoing, 4)).toEqual(['k1', 'k2', 'a1', 'a2']);
  });

  it('says that it is flushed when the transport asks for more and there is none', async () => {
    let flushed = 0;
    const outgoing = new Outgoing<string>(() => (flushed += 1));
    outgoing.answer('a1');
    const iterator = outgoing[Symbol.asyncIterator]();
    expect(outgoing.isFlushed).toBe(false);
    await iterator.next();
    expect([outgoing.isFlushed, flushed]).toEqual([false, 0]);
    const next = iterator.next();
    expect([outgoing.isFlushed, flushed]).toEqual([true, 1]);
    outgoing.answer('a2');
    expect(outgoing.isFlushed).toBe(false);
    expect(await next).toEqual({ done: false, value: 'a2' });
  });

  it('ends after what is there, and takes nothing more', async () => {
    const outgoing = new Outgoing<string>(() => undefined);
    outgoing.answer('a1');
    outgoing.end();
    outgoing.answer('late');
    const iterator = outgoing[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toBe('a1');
    expect((await iterator.next()).done).toBe(true);
  });

  it.each(['return', 'throw'] as const)('lets go of everything on %s', async (how) => {
    const outgoing = new Outgoing<string>(() => undefined);
    outgoing.answer('a1');
    const iterator = outgoing[Symbol.asyncIterator]();
    await iterator[how]?.(new Error('gone'));
    expect(outgoing.size).toBe(0);
    expect((await iterator.next()).done).toBe(true);
  });
});

describe('the waiting room', () => {
  const request = (length: number) =>
    ({
      type: 'EntityCriteriaCalculationRequest',
      envelopeId: 'e',
      body: 'x'.repeat(length),
      arrivedMs: 0,
    }) as const;

  it('is full by number', () => {
    const room = new WaitingRoom();
    for (let n = 0; n < 4095; n++) room.add(request(1));
    expect(room.isFull).toBe(false);
    room.add(request(1));
    expect(room.isFull).toBe(true);
    room.small();
    expect(room.isFull).toBe(false);
  });

  it('is full by size, and large ones wait apart', () => {
    const room = new WaitingRoom();
    const large = request(16 * 1024 * 1024);
    for (let n = 0; n < 3; n++) room.add(large);
    expect(room.isFull).toBe(false);
    room.add(large);
    expect(room.isFull).toBe(true);
    expect(room.small()).toBeUndefined();
    expect(room.large()).toBe(large);
    expect(room.isFull).toBe(false);
    room.clear();
    expect(room.size).toBe(0);
  });
});

it('a queue keeps its order over many thousands', () => {
  const fifo = new Fifo<number>();
  const found: number[] = [];
  for (let n = 0; n < 20_000; n++) {
    fifo.push(n);
    if (n % 3 > 0) found.push(fifo.shift()!);
  }
  while (fifo.size > 0) found.push(fifo.shift()!);
  expect(fifo.shift()).toBeUndefined();
  expect(found).toEqual(Array.from({ length: 20_000 }, (_, n) => n));
});

it.each([
  ['a'.repeat(10), 10, 10],
  ['a'.repeat(11), 10, 10],
  ['ä'.repeat(6), 10, 9],
  ['🙂'.repeat(6), 10, 7],
  ['', 10, 0],
])('a text is cut to bytes, never within a character: %s', (text, max, bytes) => {
  const found = cut(text, max);
  expect(Buffer.byteLength(found)).toBe(bytes);
  expect(found.isWellFormed()).toBe(true);
  expect(found === text || found.endsWith('…')).toBe(true);
});

it.each([
  ['grpc://host', 'http://host:9090'],
  ['grpc://host:80', 'http://host:80'],
  ['grpcs://host', 'https://host:9090'],
  ['grpcs://[::1]:443', 'https://[::1]:443'],
])('%s is %s', (url, base) => {
  expect(baseUrlOf(url)).toBe(base);
});
