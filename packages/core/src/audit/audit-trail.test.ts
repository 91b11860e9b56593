import { describe, expect, it } from 'vitest';
import { definePolicy } from '../policy/policy.ts';
import { virtualClock } from '../virtual-clock.ts';
import type { AuditEvent } from './audit-events.ts';
import { AuditTrail, REGISTER_AGAIN_MS } from './audit-trail.ts';

type Options = Partial<ConstructorParameters<typeof AuditTrail>[0]>;

/** A trail, and what its sink got and its caller heard. `fail` makes the sink do as it says. */
function stage(options: Options = {}) {
  const clock = virtualClock(0);
  const batches: AuditEvent[][] = [];
  const reports: { what: string; events?: number }[] = [];
  const sink: { fail: (() => PromiseLike<void>) | undefined } = { fail: undefined };
  const trail = new AuditTrail({
    sink: {
      write: (events) => {
        if (sink.fail) return sink.fail();
        batches.push([...events]);
        return undefined;
      },
    },
    strict: false,
    instance: 'one',
    clock,
    defer: (callback) => queueMicrotask(callback),
    report: (what, { events }) =>
      void reports.push({ what, ...(events === undefined ? {} : { events }) }),
    ...options,
  });
  const written = () => batches.flat();
  return { clock, trail, batches, written, reports, sink };
}

const down = () => Promise.reject(new Error('down'));
const silent = () => new Promise<void>(() => {});
const event = (n: number) => ({ event_type: 'e', n });

describe('a trail', () => {
  it('writes what is told in one turn together, numbered and with its time', async () => {
    const { trail, batches } = stage();
    trail.write({ event_type: 'a', redrive: { key: 'k' } });
    trail.write({ event_type: 'b' });
    await trail.flush();
    const redrive = { instance: 'one', run: 0 };
    const timestamp = '1970-01-01T00:00:00.000Z';
    expect(batches).toEqual([
      [
        { event_type: 'a', timestamp, redrive: { ...redrive, sequence: 1, key: 'k' } },
        { event_type: 'b', timestamp, redrive: { ...redrive, sequence: 2 } },
      ],
    ]);
  });

  it('without a sink is off, and takes nothing', async () => {
    const { trail, written } = stage({ sink: undefined });
    expect(trail.isOn).toBe(false);
    trail.write(event(1));
    trail.writeSoon(event(2));
    trail.register(definePolicy({}));
    await trail.close();
    expect([written(), trail.dropped]).toEqual([[], 0]);
  });

  it('that is strict has nothing of Redrive’s own, and registers no policy', async () => {
    const { trail, written } = stage({ strict: true });
    trail.register(definePolicy({}));
    trail.write(event(1));
    await trail.close();
    expect(written()).toEqual([{ event_type: 'e', n: 1, timestamp: '1970-01-01T00:00:00.000Z' }]);
  });

  it('registers a policy once an hour, and again when the clock was set back', async () => {
    let nowMs = 5 * REGISTER_AGAIN_MS;
    const { trail, written } = stage({ clock: { ...virtualClock(), now: () => nowMs } });
    const policy = definePolicy({ base: 7 });
    for (const atMs of [0, 1, REGISTER_AGAIN_MS, REGISTER_AGAIN_MS - 1, -5]) {
      nowMs = 5 * REGISTER_AGAIN_MS + atMs;
      trail.register(policy);
    }
    await trail.close();
    const afterMs = written().map((one) => Date.parse(one.timestamp) - 5 * REGISTER_AGAIN_MS);
    expect(afterMs).toEqual([0, REGISTER_AGAIN_MS, REGISTER_AGAIN_MS - 1, -5]);
  });

  it('registers every policy again after ten thousand others', async () => {
    const { trail, written } = stage();
    const policy = definePolicy({});
    trail.register(policy);
    await trail.flush();
    for (let base = 1; base <= 10_001; base++) {
      trail.register(definePolicy({ base }));
      if (base % 500 === 0) await trail.flush();
    }
    trail.register(policy);
    await trail.close();
    expect(written().filter((one) => one['policy'] === policy.fingerprint)).toHaveLength(2);
  });

  it('hands events to whoever changes them, those that wait included', async () => {
    const { trail, written } = stage({
      kept: (one, nowMs) => ({ ...one, seenMs: nowMs }),
    });
    trail.write(event(1));
    trail.rewrite((one) => ({ ...one, n: 'erased' }));
    await trail.close();
    expect(written()).toMatchObject([{ n: 'erased', seenMs: 0 }]);
  });
});

describe('events that come with every request', () => {
  it('are written together a little later', async () => {
    const { trail, batches, clock } = stage();
    trail.writeSoon(event(1));
    await clock.advance(99);
    trail.writeSoon(event(2));
    expect(batches).toEqual([]);
    await clock.advance(1);
    expect(batches).toMatchObject([[{ n: 1 }, { n: 2 }]]);
    trail.writeSoon(event(3));
    await trail.flush();
    expect(batches).toHaveLength(2);
    // Nothing waits: there is nothing to hurry.
    trail.flushSoon();
    expect(clock.pending).toBe(0);
  });

  it('are written at once where they fill a batch', async () => {
    const { trail, batches } = stage();
    for (let n = 1; n <= 1001; n++) trail.writeSoon(event(n));
    await new Promise(setImmediate);
    expect(batches.map(({ length }) => length)).toEqual([1000, 1]);
  });
});

describe('a sink that is away', () => {
  it('is tried five times, and then its events are counted, told and said in the trail', async () => {
    const { trail, written, reports, sink, clock } = stage();
    sink.fail = down;
    trail.write(event(1));
    await clock.advance('1m');
    expect(reports).toEqual([
      { what: 'the audit sink failed: these events are lost, and counted', events: 1 },
    ]);
    expect(trail.dropped).toBe(1);
    sink.fail = undefined;
    trail.write(event(2));
    await trail.flush();
    expect(written()).toMatchObject([
      { event_type: 'e', n: 2, redrive: { sequence: 2 } },
      { event_type: 'events_dropped', count: 1 },
    ]);
  });

  it('loses no count where the word of the loss is lost too', async () => {
    const { trail, written, sink, clock } = stage();
    sink.fail = down;
    trail.write(event(1));
    await clock.advance('1m');
    sink.fail = undefined;
    let isFirst = true;
    trail.write(event(2));
    // The event gets through, and the word of the loss does not.
    sink.fail = () => {
      if (isFirst) {
        isFirst = false;
        return Promise.resolve();
      }
      return down();
    };
    await clock.advance('1m');
    expect(trail.dropped).toBe(2);
    sink.fail = undefined;
    trail.write(event(3));
    await trail.flush();
    expect(written()).toMatchObject([{ n: 3 }, { event_type: 'events_dropped', count: 2 }]);
  });

  it('holds ten thousand events back, and drops what comes after them', async () => {
    const { trail, written, reports, sink, clock } = stage();
    sink.fail = silent;
    for (let n = 1; n <= 10_003; n++) trail.write(event(n));
    expect([trail.dropped, reports.length]).toEqual([3, 1]);
    trail.writeSoon(event(0));
    sink.fail = undefined;
    await clock.advance('1m');
    await trail.close();
    expect(written()).toHaveLength(10_001);
    expect(written().at(-1)).toMatchObject({ event_type: 'events_dropped', count: 4 });
  });

  it('that never answers is asked three times at most', async () => {
    const { trail, sink, clock } = stage();
    let asked = 0;
    const answers: (() => void)[] = [];
    sink.fail = () => {
      asked += 1;
      return new Promise((resolve) => {
        answers.push(resolve);
      });
    };
    trail.write(event(1));
    await clock.advance('10m');
    expect([asked, trail.dropped]).toEqual([3, 1]);
    // Once one of them has answered there is room for another.
    answers[0]!();
    await clock.advance(0);
    trail.write(event(2));
    await clock.advance('10m');
    expect(asked).toBe(4);
  });

  it('is not waited for when the trail is closed, and all that waits is counted', async () => {
    const { trail, sink, reports } = stage();
    sink.fail = down;
    for (let n = 1; n <= 1500; n++) trail.write(event(n));
    await trail.close();
    expect(trail.dropped).toBe(1500);
    expect(reports).toHaveLength(1);
    // Somebody hears of the loss also when nothing else is written any more.
    sink.fail = undefined;
    await trail.close();
  });
});
