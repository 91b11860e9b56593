import { setImmediate as turn } from 'node:timers/promises';
import { seededRandom, virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import type { Host } from './host.ts';
import type { AuditEvent, AuditSink } from './ports/audit.ts';
import { Trail } from './trail.ts';

function stage(sink?: AuditSink) {
  const clock = virtualClock(Date.UTC(2025, 0, 1));
  const errors: string[] = [];
  const nothing = () => undefined;
  const error = (_: object, message: string) => void errors.push(message);
  const log = { debug: nothing, info: nothing, warn: nothing, error };
  const host: Host = { clock, random: seededRandom(1), defer: queueMicrotask, log };
  return { clock, errors, trail: new Trail(sink, host, 'one') };
}

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
    trail.write('retry_attempt', {});
    await trail.close();
    expect(trail.dropped).toBe(0);
  });

  it('writes events in order, numbered, with time and instance', async () => {
    const written: AuditEvent[] = [];
    const { trail, clock } = stage({ write: async (events) => void written.push(...events) });
    expect(trail.isOn).toBe(true);
    trail.write('retry_attempt', { message_id: 'a' });
    await clock.advance('1s');
    trail.write('retry_succeeded', { message_id: 'b' });
    await trail.close();
    expect(written).toEqual([
      {
        event_type: 'retry_attempt',
        timestamp: '2025-01-01T00:00:00.000Z',
        instance: 'one',
        sequence: 1,
        message_id: 'a',
      },
      {
        event_type: 'retry_succeeded',
        timestamp: '2025-01-01T00:00:01.000Z',
        instance: 'one',
        sequence: 2,
        message_id: 'b',
      },
    ]);
  });

  it('is written in batches beside the work, and to its end before it is closed', async () => {
    const sink = new SlowSink();
    const { trail } = stage(sink);
    for (let n = 1; n <= 1500; n++) trail.write('retry_attempt', { n });
    await turn();
    expect(sink.batches.map((batch) => batch.length)).toEqual([1000]);
    const closed = trail.close();
    await sink.let();
    expect(sink.isClosed).toBe(false);
    await sink.let();
    await closed;
    expect(sink.written.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: 1500 }, (_, i) => i + 1),
    );
    expect(sink.isClosed).toBe(true);
  });

  it('counts what a sink cannot take, says so once, and the gap shows in the numbers', async () => {
    const sink = new SlowSink();
    const { trail, errors } = stage(sink);
    for (let n = 1; n <= 10_005; n++) trail.write('retry_attempt', { n });
    expect(trail.dropped).toBe(5);
    expect(errors).toEqual(['the audit sink is too slow or away: events are dropped, and counted']);
    await turn();
    for (let i = 0; i < 10; i++) await sink.let();
    trail.write('retry_attempt', { n: 'after' });
    const closed = trail.close();
    await turn();
    await sink.let();
    await closed;
    expect(sink.written).toHaveLength(10_001);
    expect(sink.written.at(-1)).toMatchObject({ n: 'after', sequence: 10_006 });
  });

  it('counts what a sink failed to write, and goes on', async () => {
    const written: AuditEvent[] = [];
    let calls = 0;
    const { trail, errors } = stage({
      async write(events) {
        if (++calls === 1) throw new Error('disk full');
        written.push(...events);
      },
    });
    trail.write('retry_attempt', { n: 1 });
    await turn();
    trail.write('retry_attempt', { n: 2 });
    await trail.close();
    expect(trail.dropped).toBe(1);
    expect(errors).toEqual(['the audit sink failed: these events are lost, and counted']);
    expect(written).toMatchObject([{ n: 2, sequence: 2 }]);
  });
});
