import { setImmediate as turn } from 'node:timers/promises';
import { ConfigError, definePolicy, replayAudit } from 'redrive';
import { seededRandom, virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { EngineError } from '../errors.ts';
import type { Host } from '../host.ts';
import type { AuditEvent, AuditOptions, AuditSink } from '../ports/audit.ts';
import { Trail } from './trail.ts';

function stage(audit?: boolean | AuditSink | AuditOptions, own?: AuditSink) {
  const clock = virtualClock(Date.UTC(2025, 0, 1));
  const errors: string[] = [];
  const nothing = () => undefined;
  const error = (_: object, message: string) => void errors.push(message);
  const log = { debug: nothing, info: nothing, warn: nothing, error };
  const host: Host = { clock, random: seededRandom(1), defer: queueMicrotask, log };
  return { clock, errors, trail: new Trail(audit, host, 'one', own) };
}

const attempt = (n: unknown) => ({ event_type: 'retry_attempt', n });
const numbers = (events: readonly AuditEvent[]) => events.map((one) => one.redrive?.sequence);

/** Keeps what it is given. */
function listSink() {
  const written: AuditEvent[] = [];
  const sink: AuditSink = { write: async (events) => void written.push(...events) };
  return { written, sink };
}

/** Fails as long as it is told to. */
function frailSink() {
  const { written, sink } = listSink();
  const state = { isDown: true, calls: 0 };
  const frail: AuditSink = {
    async write(events) {
      state.calls += 1;
      if (state.isDown) throw new Error('disk full');
      await sink.write(events);
    },
  };
  return { written, state, sink: frail };
}

/** Resolves when what it adds there is called. */
function held(release: (() => void)[]): Promise<void> {
  return new Promise((resolve) => {
    release.push(resolve);
  });
}

const never = () => held([]);

/** Writes when it is let. */
class SlowSink implements AuditSink {
  readonly batches: (readonly AuditEvent[])[] = [];
  readonly written: AuditEvent[] = [];
  isClosed = false;
  readonly #waiting: (() => void)[] = [];

  async write(events: readonly AuditEvent[]): Promise<void> {
    this.batches.push(events);
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
    });
    this.written.push(...events);
  }

  async let(): Promise<void> {
    for (const resolve of this.#waiting.splice(0)) resolve();
    await turn();
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

describe('the trail', () => {
  it('is off without a sink', async () => {
    const { trail } = stage();
    expect(trail.isOn).toBe(false);
    trail.write(attempt(1));
    trail.register(definePolicy());
    await trail.close();
    expect(trail.dropped).toBe(0);
  });

  it('writes events in order, numbered, with time, instance and run', async () => {
    const { written, sink } = listSink();
    const { trail, clock } = stage(sink);
    expect(trail.isOn).toBe(true);
    trail.write({ ...attempt(1), redrive: { message_id: 'a' } });
    await clock.advance('1s');
    trail.write(attempt(2));
    await trail.close();
    const place = { instance: 'one', run: Date.UTC(2025, 0, 1) };
    expect(written).toEqual([
      {
        event_type: 'retry_attempt',
        timestamp: '2025-01-01T00:00:00.000Z',
        n: 1,
        redrive: { ...place, sequence: 1, message_id: 'a' },
      },
      {
        event_type: 'retry_attempt',
        timestamp: '2025-01-01T00:00:01.000Z',
        n: 2,
        redrive: { ...place, sequence: 2 },
      },
    ]);
  });

  it('is written in batches beside the work, and to its end before it is closed', async () => {
    const sink = new SlowSink();
    const { trail } = stage(sink);
    for (let n = 1; n <= 1500; n++) trail.write(attempt(n));
    await turn();
    expect(sink.batches.map((batch) => batch.length)).toEqual([1000]);
    const closed = trail.close();
    await sink.let();
    expect(sink.isClosed).toBe(false);
    await sink.let();
    await closed;
    expect(numbers(sink.written)).toEqual(Array.from({ length: 1500 }, (_, i) => i + 1));
    expect(sink.isClosed).toBe(true);
  });

  it('counts what a sink cannot take, says so once, and the gap shows in the numbers', async () => {
    const sink = new SlowSink();
    const { trail, errors } = stage(sink);
    for (let n = 1; n <= 10_005; n++) trail.write(attempt(n));
    expect(trail.dropped).toBe(5);
    expect(errors).toEqual(['the audit sink is too slow or away: events are dropped, and counted']);
    await turn();
    for (let i = 0; i < 11; i++) await sink.let();
    trail.write(attempt('after'));
    const closed = trail.close();
    await turn();
    await sink.let();
    await closed;
    expect(sink.written).toHaveLength(10_002);
    expect(sink.written.at(-2)).toMatchObject({ event_type: 'events_dropped', count: 5 });
    expect(sink.written.at(-1)).toMatchObject({ n: 'after', redrive: { sequence: 10_007 } });
    const report = await replayAudit(sink.written);
    expect(report).toMatchObject({ dropped: 5, missing: 5, twins: 0 });
  });
});

describe('what a sink cannot take', () => {
  it('is tried again for some seconds, so that a short outage loses nothing', async () => {
    const { written, state, sink } = frailSink();
    const { trail, clock, errors } = stage(sink);
    trail.write(attempt(1));
    await clock.advance('1s');
    trail.write(attempt(2));
    state.isDown = false;
    await clock.advance('5s');
    expect(numbers(written)).toEqual([1, 2]);
    expect(errors).toEqual([]);
    expect(trail.dropped).toBe(0);
  });

  it('is lost after five tries, counted and said, and the trail shows it', async () => {
    const { written, state, sink } = frailSink();
    const { trail, clock, errors } = stage(sink);
    trail.write(attempt(1));
    await clock.advance('1m');
    expect(state.calls).toBe(5);
    expect(trail.dropped).toBe(1);
    expect(errors).toEqual(['the audit sink failed: these events are lost, and counted']);
    state.isDown = false;
    trail.write(attempt(2));
    await clock.advance('1s');
    expect(written).toMatchObject([{ n: 2 }, { event_type: 'events_dropped', count: 1 }]);
    await trail.close();
    expect(trail.dropped).toBe(1);
  });

  it('is said at the end, where nothing came after it', async () => {
    const { written, state, sink } = frailSink();
    const { trail, clock } = stage(sink);
    trail.write(attempt(1));
    await clock.advance('1m');
    state.isDown = false;
    await trail.close();
    expect(written).toMatchObject([{ event_type: 'events_dropped', count: 1 }]);
  });

  it('is said again where the saying was lost', async () => {
    const { written, state, sink } = frailSink();
    const { trail, clock } = stage(sink);
    trail.write(attempt(1));
    await clock.advance('1m');
    state.isDown = false;
    trail.write(attempt(2));
    // The second batch, with the event that says so, is lost.
    const write = sink.write.bind(sink);
    sink.write = async (events) => {
      await write(events);
      state.isDown = true;
    };
    await clock.advance('1m');
    expect(trail.dropped).toBe(2);
    state.isDown = false;
    await trail.close();
    expect(written).toMatchObject([{ n: 2 }, { event_type: 'events_dropped', count: 2 }]);
    expect(numbers(written)).toEqual([2, 4]);
  });

  it('is given up at once when the trail is closed', async () => {
    const { state, sink } = frailSink();
    const { trail, errors } = stage(sink);
    for (let n = 1; n <= 2500; n++) trail.write(attempt(n));
    await trail.close();
    expect(state.calls).toBe(1);
    expect(trail.dropped).toBe(2500);
    expect(errors).toHaveLength(1);
  });

  it('fails the trail no more when the sink throws at once', async () => {
    const { trail, clock, errors } = stage({
      write() {
        throw new Error('no promise at all');
      },
    });
    trail.write(attempt(1));
    await clock.advance('1m');
    expect(trail.dropped).toBe(1);
    expect(errors).toHaveLength(1);
  });
});

describe('a sink that does not answer', () => {
  it('is given five seconds, and asked again', async () => {
    const { written, sink } = listSink();
    let calls = 0;
    const { trail, clock } = stage({
      write: (events) => (++calls === 1 ? never() : sink.write(events)),
    });
    trail.write(attempt(1));
    await clock.advance(4999);
    expect(calls).toBe(1);
    await clock.advance('1s');
    expect(calls).toBe(2);
    expect(numbers(written)).toEqual([1]);
    expect(trail.dropped).toBe(0);
  });

  it('is not asked a fourth time while three writes hang', async () => {
    const release: (() => void)[] = [];
    const { written, sink } = listSink();
    const { trail, clock } = stage({
      async write(events) {
        if (release.length < 3) await held(release);
        await sink.write(events);
      },
    });
    trail.write(attempt(1));
    await clock.advance('10m');
    expect(release).toHaveLength(3);
    expect(trail.dropped).toBe(1);
    for (const resolve of release) resolve();
    await turn();
    trail.write(attempt(2));
    await clock.advance('1s');
    // The first came after all, three times: their number tells.
    expect(numbers(written)).toEqual([1, 1, 1, 2, 3]);
  });

  it('does not keep the trail from being closed', async () => {
    const { trail, clock } = stage({ write: never });
    trail.write(attempt(1));
    const closed = trail.close();
    await clock.advance('5s');
    await closed;
    expect(trail.dropped).toBe(1);
  });
});

describe('a policy', () => {
  const policy = definePolicy({ maxAttempts: 7 });
  const registered = (events: readonly AuditEvent[]) =>
    events.filter((one) => one.event_type === 'policy_registered').map((one) => one['policy']);

  it('is registered at its first use, and again every hour', async () => {
    const { written, sink } = listSink();
    const { trail, clock } = stage(sink);
    const other = definePolicy({ maxAttempts: 8 });
    for (const one of [policy, other, policy]) trail.register(one);
    await clock.advance('59m');
    trail.register(policy);
    expect(registered(written)).toEqual([policy.fingerprint, other.fingerprint]);
    await clock.advance('1m');
    trail.register(policy);
    await trail.close();
    expect(registered(written)).toEqual([
      policy.fingerprint,
      other.fingerprint,
      policy.fingerprint,
    ]);
    expect(written[0]).toMatchObject({ definition: { maxAttempts: 7 } });
  });

  it('is registered again after events were lost: it may have been among them', async () => {
    const { written, state, sink } = frailSink();
    const { trail, clock } = stage(sink);
    trail.register(policy);
    await clock.advance('1m');
    state.isDown = false;
    trail.register(policy);
    await trail.close();
    expect(registered(written)).toEqual([policy.fingerprint]);
  });

  it('is forgotten when there are too many, which does no harm', async () => {
    const { written, sink } = listSink();
    const { trail } = stage(sink);
    trail.register(policy);
    for (let n = 1; n <= 10_000; n++) {
      trail.register(definePolicy({ base: n }));
      if (n % 1000 === 0) await turn();
    }
    trail.register(policy);
    await trail.close();
    expect(registered(written)).toHaveLength(10_002);
  });
});

describe('the option audit', () => {
  it('that is true, or has no sink, means the sink of the store', async () => {
    for (const audit of [true, {}, { successes: true }]) {
      const { written, sink } = listSink();
      const { trail } = stage(audit, sink);
      trail.write(attempt(1));
      await trail.close();
      expect(written).toHaveLength(1);
    }
  });

  it('with a sink means that sink', async () => {
    const own = listSink();
    const { written, sink } = listSink();
    const { trail } = stage({ sink }, own.sink);
    trail.write(attempt(1));
    await trail.close();
    expect([written.length, own.written.length]).toEqual([1, 0]);
  });

  it('that is strict leaves out what is not in the contract', async () => {
    const { written, sink } = listSink();
    const { trail } = stage({ sink, strict: true });
    trail.register(definePolicy());
    trail.write({ ...attempt(1), redrive: { message_id: 'a' } });
    await trail.close();
    expect(written).toEqual([
      { event_type: 'retry_attempt', n: 1, timestamp: '2025-01-01T00:00:00.000Z' },
    ]);
  });

  it('says whether what worked is written', () => {
    const { sink } = listSink();
    expect(stage(sink).trail.hasSuccesses).toBe(false);
    expect(stage({ sink, successes: true }).trail.hasSuccesses).toBe(true);
  });

  it('prunes by its retention, where the sink can, and not without one', async () => {
    const asked: [number, number][] = [];
    const sink: AuditSink = {
      write: async () => undefined,
      prune: async (olderThanMs, limit) => asked.push([olderThanMs, limit]),
    };
    expect(await stage({ sink }).trail.prune(100)).toBe(0);
    expect(await stage({ sink, retention: '90d' }).trail.prune(100)).toBe(1);
    expect(asked).toEqual([[90 * 86_400_000, 100]]);
    const { sink: other } = listSink();
    expect(await stage({ sink: other, retention: '90d' }).trail.prune(100)).toBe(0);
  });

  it('with faults is refused, all at once', () => {
    const wrong = { sucesses: true, retention: '5m' } as AuditOptions;
    expect(() => stage(wrong, listSink().sink)).toThrow(
      /audit\.sucesses.*'successes'[^]*audit\.retention/,
    );
    expect(() => stage(wrong, listSink().sink)).toThrow(ConfigError);
  });

  it('without any sink at all is refused', () => {
    expect(() => stage(true)).toThrow(EngineError);
    expect(() => stage({ sink: {} as AuditSink })).toThrow('give a sink with a method write');
  });
});

describe('erasing', () => {
  const text = 'Eva';
  const about = (id: string) => ({
    event_type: 'retry_attempt',
    exception_message: text,
    redrive: { message_id: id },
  });

  it('reaches events that wait, and leaves those of others', async () => {
    const sink = new SlowSink();
    const { trail } = stage({ sink });
    for (const id of ['a', 'b', 'a']) trail.write(about(id));
    await turn();
    await trail.erase('a');
    await sink.let();
    await trail.close();
    expect(sink.written.map((one) => one['exception_message'])).toEqual([null, text, null]);
    expect(sink.written.map((one) => one['erased_at'] !== undefined)).toEqual([true, false, true]);
  });

  it('reaches a batch that is tried again, and events that are made later', async () => {
    const { written, state, sink } = frailSink();
    const { trail, clock } = stage(sink);
    trail.write(about('a'));
    await turn();
    expect(state.calls).toBe(1);
    await trail.erase('a');
    state.isDown = false;
    await clock.advance('1s');
    trail.write(about('a'));
    await clock.advance('1h');
    // By now nobody has an event from before the erase: this is a message that came back.
    trail.write(about('a'));
    await trail.close();
    expect(written.map((one) => one['exception_message'])).toEqual([null, null, text]);
  });

  it("asks the sink, and the store's own, which may have been used before", async () => {
    const asked: string[] = [];
    const eraser = (name: string): AuditSink => ({
      write: async () => undefined,
      erase: async (id) => asked.push(`${name} ${id}`),
    });
    expect(await stage(eraser('sink'), eraser('own')).trail.erase('a')).toBe(true);
    expect(asked).toEqual(['own a', 'sink a']);
    expect(await stage(true, eraser('own')).trail.erase('b')).toBe(true);
    expect(await stage(false, eraser('own')).trail.erase('c')).toBe(true);
    expect(asked.slice(2)).toEqual(['own b', 'own c']);
  });

  it('says where the sink keeps what it was given', async () => {
    const { sink } = listSink();
    expect(await stage(sink).trail.erase('a')).toBe(false);
    const erase = async () => 0;
    const strict = { sink: { ...sink, erase }, strict: true };
    expect(await stage(strict).trail.erase('a')).toBe(false);
    expect(await stage().trail.erase('a')).toBe(true);
  });

  it('empties later events of a strict trail too, which do not name their message', async () => {
    const { written, sink } = listSink();
    const { trail } = stage({ sink, strict: true });
    await trail.erase('a');
    trail.write(about('a'));
    await trail.close();
    expect(written).toMatchObject([{ exception_message: null }]);
    expect(written[0]).not.toHaveProperty('redrive');
  });
});

describe('what is to be written soon', () => {
  it('waits for more, and is written together a tenth of a second later', async () => {
    const { sink, written } = listSink();
    const { trail, clock } = stage(sink);
    trail.writeSoon(attempt(1));
    await clock.advance(99);
    trail.writeSoon(attempt(2));
    await turn();
    expect(written).toEqual([]);
    await clock.advance(1);
    await turn();
    expect(numbers(written)).toEqual([1, 2]);
  });

  it('does not wait where a batch is full, or something else is written', async () => {
    const { sink, written } = listSink();
    const { trail } = stage(sink);
    for (let n = 0; n < 1000; n++) trail.writeSoon(attempt(n));
    await turn();
    expect(written).toHaveLength(1000);
    trail.writeSoon(attempt('soon'));
    trail.write(attempt('now'));
    await turn();
    expect(written).toHaveLength(1002);
  });

  it('is written by a close, and before a reading', async () => {
    const { sink, written } = listSink();
    const read = async () => ({ events: [] }) as never;
    const { trail, clock } = stage({ ...sink, read });
    trail.writeSoon(attempt(1));
    await trail.read({ limit: 1 });
    await turn();
    expect(written).toHaveLength(1);
    trail.writeSoon(attempt(2));
    await trail.close();
    expect(written).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });
});
