import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { EntryHook, type InboxEntry } from './entry-hook.ts';
import { hostOf, type Log } from '../host.ts';

const nothing = () => undefined;

function stage(debounceMs: number, onEntry: (entry: InboxEntry) => unknown = nothing) {
  const clock = virtualClock(0);
  const said: { message: string; fields: object }[] = [];
  const error = (fields: object, message: string) => void said.push({ message, fields });
  const log: Log = { debug: nothing, info: nothing, warn: nothing, error };
  const told: (InboxEntry & { at: number })[] = [];
  const hook = new EntryHook(
    {
      debounceMs,
      onEntry: (entry) => {
        told.push({ ...entry, at: clock.monotonic() });
        return onEntry(entry);
      },
    },
    hostOf({ clock, log }),
  );
  let n = 0;
  const enter = (fingerprint: string, message = 'down') => {
    const failure = { class: 'transient', message } as const;
    const id = `m-${(n += 1)}`;
    hook.entered({ fingerprint, reason: 'EXHAUSTED', failure }, { lane: 'l', id }, clock.now());
  };
  return { clock, hook, enter, told, said };
}

const counts = (told: readonly { fingerprint: string; count: number; at: number }[]) =>
  told.map(({ fingerprint, count, at }) => `${fingerprint} ${count} at ${at}`);

describe('the hook of the inbox', () => {
  it('tells of the first of a group at once, with all about it', () => {
    const { enter, told } = stage(1000);
    enter('a', 'refused');
    expect(told).toEqual([
      {
        fingerprint: 'a',
        lane: 'l',
        reason: 'EXHAUSTED',
        failure: { class: 'transient', message: 'refused' },
        count: 1,
        firstAtMs: 0,
        lastAtMs: 0,
        id: 'm-1',
        at: 0,
      },
    ]);
  });

  it('tells of what was erased meanwhile without its words', async () => {
    const { clock, hook, enter, told } = stage(1000);
    for (const fingerprint of ['a', 'b', 'a', 'b']) enter(fingerprint, 'Eva');
    hook.erase('m-3');
    await clock.advance(1000);
    expect(told.slice(2)).toMatchObject([
      { id: 'm-3', count: 1, failure: { class: 'transient', code: 'ERASED' } },
      { id: 'm-4', count: 1, failure: { class: 'transient', message: 'Eva' } },
    ]);
    expect(told[2]?.failure).not.toHaveProperty('message');
  });

  it('tells of what follows together, once at the end of each window', async () => {
    const { clock, enter, told } = stage(1000);
    for (let n = 0; n < 25; n++) {
      enter('a', `failure ${n}`);
      await clock.advance(100);
    }
    await clock.advance(5000);
    expect(counts(told)).toEqual(['a 1 at 0', 'a 9 at 1000', 'a 10 at 2000', 'a 5 at 3000']);
    expect(told[1]).toMatchObject({
      firstAtMs: 100,
      lastAtMs: 900,
      id: 'm-10',
      failure: { message: 'failure 9' },
    });
  });

  it('keeps groups apart, each with its own window', async () => {
    const { clock, enter, told } = stage(1000);
    enter('a');
    await clock.advance(300);
    enter('b');
    enter('a');
    await clock.advance(300);
    enter('b');
    await clock.advance(5000);
    expect(counts(told)).toEqual(['a 1 at 0', 'b 1 at 300', 'a 1 at 1000', 'b 1 at 1300']);
  });

  it('forgets a group in which nothing more came, so that its next is told at once, and waits for nothing', async () => {
    const { clock, enter, told } = stage(1000);
    enter('a');
    await clock.advance(1000);
    expect(clock.pending).toBe(0);
    await clock.advance(1);
    enter('a');
    expect(counts(told)).toEqual(['a 1 at 0', 'a 1 at 1001']);
  });

  it('without a window tells of every entry', () => {
    const { clock, enter, told } = stage(0);
    for (let n = 0; n < 3; n++) enter('a');
    expect(counts(told)).toEqual(['a 1 at 0', 'a 1 at 0', 'a 1 at 0']);
    expect(clock.pending).toBe(0);
  });

  it('past ten thousand groups tells of the oldest early and forgets them, and loses none', async () => {
    const { clock, enter, told } = stage(1000);
    const GROUPS = 10_050;
    for (let n = 0; n < GROUPS; n++) {
      enter(`g${n}`);
      enter(`g${n}`);
    }
    const early = told.slice(GROUPS - 50).filter(({ at }) => at === 0);
    expect(told).toHaveLength(GROUPS + 50);
    expect(early.some(({ fingerprint }) => fingerprint === 'g49')).toBe(true);
    expect(told.some(({ fingerprint, count }) => fingerprint === 'g50' && count > 1)).toBe(false);
    await clock.advance(2000);
    const sum = told.reduce((all, { count }) => all + count, 0);
    expect(sum).toBe(2 * GROUPS);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('no chat');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no chat'))],
  ])('goes on, and says so, when the callback %s', async (_, onEntry) => {
    const { clock, enter, told, said } = stage(1000, onEntry);
    enter('a');
    enter('a');
    await clock.advance(1000);
    expect(counts(told)).toEqual(['a 1 at 0', 'a 1 at 1000']);
    expect(said).toHaveLength(2);
    expect(said[0]).toMatchObject({
      message: 'the inbox hook onEntry failed',
      fields: { err: new Error('no chat'), fingerprint: 'a', lane: 'l' },
    });
  });

  it('does not mind a callback by which something enters the inbox', async () => {
    const { clock, hook, told } = stage(1000, (entry) => {
      if (entry.count > 1 || entry.id === 'again') return;
      hook.entered({ ...entry, reason: 'PERMANENT' }, { lane: 'l', id: 'again' }, 5);
    });
    hook.entered(
      { fingerprint: 'a', reason: 'EXHAUSTED', failure: { class: 'unknown' } },
      { lane: 'l', id: 'first' },
      0,
    );
    await clock.advance(5000);
    expect(told.map(({ id, at }) => `${id} at ${at}`)).toEqual(['first at 0', 'again at 1000']);
  });
});

describe('a stop of the hook', () => {
  it('tells of all that was kept back, waits for who works on it, and leaves no timer', async () => {
    const gate = Promise.withResolvers<void>();
    const { clock, hook, enter, told } = stage(1000, ({ count }) =>
      count === 2 ? gate.promise : undefined,
    );
    for (const group of ['a', 'b', 'a', 'a', 'c']) enter(group);
    let isStopped = false;
    const stopped = hook.stop().then(() => (isStopped = true));
    expect(counts(told)).toEqual(['a 1 at 0', 'b 1 at 0', 'c 1 at 0', 'a 2 at 0']);
    expect(clock.pending).toBe(0);
    await clock.advance(5000);
    expect(isStopped).toBe(false);
    gate.resolve();
    await stopped;
    await hook.stop();
  });

  it('does not silence what comes after it', async () => {
    const { clock, hook, enter, told } = stage(1000);
    await hook.stop();
    enter('a');
    enter('a');
    expect(counts(told)).toEqual(['a 1 at 0', 'a 1 at 0']);
    expect(clock.pending).toBe(0);
  });
});
