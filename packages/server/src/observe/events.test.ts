import type { EngineEvent } from '@redrive/engine';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { Feed } from './events.ts';

const at = Date.UTC(2025, 0, 1);
const first = at * 1000;

function feedOf(instance = 'i-1') {
  const soon: (() => void)[] = [];
  const clock = virtualClock(at);
  const feed = new Feed({ instance, clock, defer: (callback) => soon.push(callback) });
  const turn = () => {
    for (const callback of soon.splice(0)) callback();
  };
  const add = (count: number) => {
    for (let i = 0; i < count; i++) feed.add({ type: 'accepted', id: `m-${i}`, lane: 'queue:a' });
  };
  const read = (lastEventId?: string) => {
    const texts: string[] = [];
    return { texts, end: feed.read(lastEventId, (text) => texts.push(text)) };
  };
  return { feed, clock, soon, turn, add, read };
}

const idsIn = (texts: string[]) =>
  texts
    .join('')
    .match(/^id: .*$/gm)!
    .map((line) => Number(line.slice(line.lastIndexOf('-') + 1)));

describe('an event', () => {
  it('has an id, a name and data, in the words of the wire', () => {
    const { feed, turn, read } = feedOf();
    const { texts } = read();
    feed.add({ type: 'leaseLost', id: 'm-1', lane: 'queue:a', attempt: 2 });
    turn();
    expect(texts[1]).toBe(
      `id: i-1-${first}\nevent: lease_lost\ndata: {"at":"2025-01-01T00:00:00.000Z","message_id":"m-1","lane":"queue:a","attempt":2}\n\n`,
    );
  });

  it.each<[EngineEvent, string, object]>([
    [
      { type: 'started', id: 'm', lane: 'l', attempt: 1, lateMs: 5, again: false, lease: 9 },
      'started',
      { message_id: 'm', late_ms: 5, again: false, lease: 9 },
    ],
    [
      {
        type: 'retry',
        id: 'm',
        lane: 'l',
        attempt: 1,
        delayMs: 7,
        decision: {
          action: 'retry',
          reason: 'BACKOFF',
          delayMs: 7,
          attempt: 1,
          nextAttempt: 2,
          maxAttempts: 4,
          failure: { class: 'transient', message: 'quotes the payload' },
        },
      },
      'retry',
      { delay_ms: 7 },
    ],
    [{ type: 'inboxFull', open: 5, maxItems: 5 }, 'inbox_full', { open: 5, max_items: 5 }],
    [
      { type: 'jobEnded', job: 3, state: 'stopped', why: 'away: amqp://a:b@c' },
      'job_ended',
      { job: 3, state: 'stopped', why: 'away: amqp://***@c' },
    ],
  ])('is told without payloads and credentials: %j', (event, name, data) => {
    const { feed, turn, read } = feedOf();
    const { texts } = read();
    feed.add(event);
    turn();
    const text = texts[1]!;
    expect(text).toContain(`\nevent: ${name}\n`);
    const told: unknown = JSON.parse(/^data: (.*)$/m.exec(text)![1]!);
    expect(told).toMatchObject(data);
    expect(text).not.toContain('quotes the payload');
  });
});

describe('a reader', () => {
  it('gets what comes after it, and first a place to come back to', () => {
    const { turn, add, read } = feedOf();
    add(3);
    const { texts } = read();
    add(2);
    turn();
    expect(texts[0]).toBe(`id: i-1-${first + 2}\n\n`);
    expect(idsIn(texts)).toEqual([first + 2, first + 3, first + 4]);
  });

  it('goes on where it was', () => {
    const { turn, add, read } = feedOf();
    add(5);
    const { texts } = read(`i-1-${first + 1}`);
    turn();
    expect(idsIn(texts)).toEqual([first + 2, first + 3, first + 4]);
  });

  it('that has all gets nothing until there is more', () => {
    const { turn, add, read, soon } = feedOf();
    add(2);
    const { texts } = read(`i-1-${first + 1}`);
    expect([texts, soon]).toEqual([[], []]);
    add(1);
    turn();
    expect(idsIn(texts)).toEqual([first + 2]);
  });

  it.each([
    ['of another instance', `i-2-${first + 1}`],
    ['that was never given', `i-1-${first + 99}`],
    ['from an earlier life of this instance', 'i-1-3'],
    ['that is none', 'i-1-x'],
    ['that has no instance', '17'],
  ])('with an id %s is told to begin anew, and then gets what comes', (_what, id) => {
    const { turn, add, read } = feedOf();
    add(3);
    const { texts } = read(id);
    expect(texts).toEqual([`id: i-1-${first + 2}\nevent: reset\ndata: {}\n\n`]);
    add(1);
    turn();
    expect(idsIn(texts)).toEqual([first + 2, first + 3]);
  });

  it('that comes back is known while its place is among the last 10 000', () => {
    const { turn, add, read } = feedOf();
    add(10_001);
    const known = read(`i-1-${first}`);
    const late = read(`i-1-${first - 1}`);
    while (idsIn([...known.texts, 'id: x-0']).length < 10_001) turn();
    expect(idsIn(known.texts)).toEqual(Array.from({ length: 10_000 }, (_, i) => first + 1 + i));
    expect(late.texts[0]).toContain('event: reset');
  });

  it('catches up in pieces, and all readers at one place get one text', () => {
    const { turn, add, read } = feedOf();
    add(1200);
    const one = read(`i-1-${first}`);
    const two = read(`i-1-${first}`);
    turn();
    expect(idsIn(one.texts)).toHaveLength(500);
    turn();
    turn();
    expect(one.texts).toHaveLength(3);
    expect(two.texts).toEqual(one.texts);
    expect(idsIn(one.texts)).toHaveLength(1199);
  });

  it('that was overtaken by the ring is told to begin anew', () => {
    const { turn, add, read } = feedOf();
    const { texts } = read();
    add(10_001);
    turn();
    expect(texts[1]).toBe(`id: i-1-${first + 10_000}\nevent: reset\ndata: {}\n\n`);
    add(1);
    turn();
    expect(idsIn(texts).at(-1)).toBe(first + 10_001);
  });

  it('that has ended gets nothing, and costs nothing', () => {
    const { feed, turn, add, read, soon } = feedOf();
    const { texts, end } = read();
    expect(feed.readers).toBe(1);
    end();
    end();
    add(1);
    expect([feed.readers, soon]).toEqual([0, []]);
    turn();
    expect(texts).toHaveLength(1);
  });

  it('may end another one while it is written to', () => {
    const { feed, turn, add, read } = feedOf();
    const other = read();
    feed.read(undefined, () => other.end());
    const third = read();
    add(1);
    turn();
    expect(idsIn(third.texts)).toEqual([first - 1, first]);
  });

  it('is let go at the end', () => {
    const { feed, turn, add, read } = feedOf();
    const { texts } = read();
    add(1);
    feed.close();
    turn();
    expect([texts.length, feed.readers]).toEqual([1, 0]);
  });

  it('is written to soon, without anybody turning', async () => {
    const feed = new Feed({ instance: 'i', clock: virtualClock(at) });
    const text = await new Promise<string>((resolve) => {
      feed.read(undefined, (one) => one.includes('event:') && resolve(one));
      feed.add({ type: 'cancelled', id: 'm', lane: 'l' });
    });
    expect(text).toContain('event: cancelled');
  });
});
