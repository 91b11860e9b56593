import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { createEngine } from '../engine.ts';

const LANE = 'notification:urgent';

async function stage() {
  const clock = virtualClock();
  const store = memory({ clock });
  const start = async () => {
    const engine = createEngine({ store, clock });
    await engine.start();
    const told: boolean[] = [];
    const end = engine.watchLane(LANE, {
      running: () => 3,
      paused: (isPaused) => void told.push(isPaused),
    });
    return { engine, told, end };
  };
  return { clock, start };
}

describe('a lane that somebody serves beside the engine', () => {
  it('is listed and known', async () => {
    const { engine, end } = await (await stage()).start();
    expect(await engine.lanes()).toEqual([{ lane: LANE, state: 'closed', running: 3 }]);
    expect(await engine.laneCounts()).toMatchObject({ closed: 1 });
    expect(await engine.pause(LANE, 'ada')).toEqual({ known: true });
    const paused = { lane: LANE, state: 'paused', running: 3, pausedBy: 'ada' };
    expect(await engine.lanes({ state: 'paused' })).toEqual([paused]);
    end();
    expect(await engine.lanes()).toMatchObject([{ state: 'paused', running: 0 }]);
  });

  it('is told in all instances that it was paused or resumed, once for each change', async () => {
    const { clock, start } = await stage();
    const one = await start();
    const two = await start();
    expect([one.told, two.told]).toEqual([[false], [false]]);
    await one.engine.pause(LANE);
    await one.engine.pause(LANE, 'ada');
    await one.engine.pause('handler:other');
    await clock.advance('1s');
    expect([one.told, two.told]).toEqual([
      [false, true],
      [false, true],
    ]);
    // One that comes later is told at once.
    const three = await start();
    expect(three.told).toEqual([true]);
    one.end();
    await two.engine.resume(LANE);
    await clock.advance('1s');
    expect([one.told, two.told, three.told]).toEqual([
      [false, true],
      [false, true, false],
      [true, false],
    ]);
  });

  it('stays with whoever serves it now when the one before ends', async () => {
    const { engine, told, end } = await (await stage()).start();
    const toldLater: boolean[] = [];
    const endLater = engine.watchLane(LANE, {
      running: () => 5,
      paused: (isPaused) => void toldLater.push(isPaused),
    });
    end();
    await engine.pause(LANE);
    expect([told, toldLater]).toEqual([[false], [false, true]]);
    expect(await engine.lanes()).toMatchObject([{ lane: LANE, running: 5 }]);
    endLater();
    expect(await engine.lanes()).toMatchObject([{ lane: LANE, running: 0 }]);
  });

  it('cannot have the name of a delay queue, and the error says what to pause instead', async () => {
    const { engine } = await (await stage()).start();
    const refused = engine.pause('delay-queue:notifications.urgent');
    await expect(refused).rejects.toThrow('notification:urgent');
  });

  it('whose callback throws keeps no other from being told', async () => {
    const clock = virtualClock();
    const errors: object[] = [];
    const quiet = () => undefined;
    const error = (fields: object) => void errors.push(fields);
    const log = { debug: quiet, info: quiet, warn: quiet, error };
    const engine = createEngine({ store: memory({ clock }), clock, log });
    await engine.start();
    const told: boolean[] = [];
    engine.watchLane('notification:bad', {
      running: () => 0,
      paused: () => {
        throw new Error('no');
      },
    });
    engine.watchLane(LANE, { running: () => 0, paused: (isPaused) => void told.push(isPaused) });
    await engine.pause('notification:bad');
    await engine.pause(LANE);
    expect(told).toEqual([false, true]);
    expect(errors).toMatchObject([{ lane: 'notification:bad' }, { lane: 'notification:bad' }]);
    await engine.stop();
  });
});
