import { describe, expect, it } from 'vitest';
import {
  type BreakerSettings,
  type LaneState,
  opened,
  openLane,
  paused,
  permit,
  prolonged,
  ramped,
  readLaneState,
  resultOf,
  resumed,
  saysNothing,
} from './lane-state.ts';

const NOW = 1_000_000;
const settings: BreakerSettings = { openForMs: 1000, maxOpenForMs: 5000, turnMs: 300 };

const open: LaneState = { breaker: { state: 'open', untilMs: NOW + 1000, openings: 1 } };
const probing = (limit = 1, by = 'me'): LaneState => ({
  breaker: { state: 'probing', untilMs: NOW + 300, openings: 1, by, limit },
});

describe('permit', () => {
  it('serves a closed lane in full', () => {
    expect(permit(openLane, 'me', NOW, 8, settings)).toEqual({
      may: 'serve',
      limit: 8,
      probing: false,
    });
  });

  it('waits for a paused lane without an end, whatever its breaker says', () => {
    expect(permit(paused(openLane, NOW), 'me', NOW, 8, settings)).toEqual({ may: 'wait' });
    expect(permit(paused(open, NOW), 'me', NOW + 9999, 8, settings)).toEqual({ may: 'wait' });
  });

  it('waits for an open lane until its time is over, then takes a turn at probing', () => {
    const untilMs = NOW + 1000;
    expect(permit(open, 'me', untilMs - 1, 8, settings)).toEqual({ may: 'wait', untilMs });
    expect(permit(open, 'me', untilMs, 8, settings)).toEqual({
      may: 'take',
      state: {
        breaker: { state: 'probing', untilMs: untilMs + 300, openings: 1, by: 'me', limit: 1 },
      },
    });
  });

  it('lets only the one whose turn it is probe, at its limit', () => {
    const untilMs = NOW + 300;
    expect(permit(probing(2), 'me', NOW, 8, settings)).toEqual({
      may: 'serve',
      limit: 2,
      probing: true,
    });
    expect(permit(probing(16), 'me', NOW, 8, settings)).toMatchObject({ limit: 8 });
    expect(permit(probing(2), 'you', NOW, 8, settings)).toEqual({ may: 'wait', untilMs });
  });

  it('begins again with one task when a turn is over, its own too', () => {
    for (const instance of ['me', 'you']) {
      expect(permit(probing(4), instance, NOW + 300, 8, settings)).toMatchObject({
        may: 'take',
        state: { breaker: { state: 'probing', by: instance, limit: 1 } },
      });
    }
  });
});

describe('opened', () => {
  it('lasts twice as long each time in a row, up to a limit', () => {
    let lane = openLane;
    const lasts: number[] = [];
    for (let i = 0; i < 40; i++) {
      lane = opened(lane, NOW, settings);
      if (lane.breaker.state === 'open') lasts.push(lane.breaker.untilMs - NOW);
    }
    expect(lasts.slice(0, 5)).toEqual([1000, 2000, 4000, 5000, 5000]);
    expect(lasts.at(-1)).toBe(5000);
  });

  it('counts on from a probe that failed, and from nothing once it was closed', () => {
    expect(opened(probing(), NOW, settings).breaker).toMatchObject({ openings: 2 });
    expect(opened(openLane, NOW, settings).breaker).toMatchObject({ openings: 1 });
  });

  it('leaves a pause where it is', () => {
    const lane = paused(openLane, NOW, 'ops');
    expect(opened(lane, NOW, settings).paused).toEqual({ atMs: NOW, by: 'ops' });
  });
});

describe('a round', () => {
  const round = (worked: number, failed: number, isShared = failed > 1) => ({
    worked,
    failed,
    isShared,
  });

  it('of one probe is decided by that alone', () => {
    expect(resultOf(round(0, 0), 1)).toBe('goesOn');
    expect(resultOf(round(1, 0), 1)).toBe('worked');
    expect(resultOf(round(0, 1), 1)).toBe('down');
  });

  it('has worked with as many successes as its limit, whatever failed', () => {
    expect(resultOf(round(1, 0), 2)).toBe('goesOn');
    expect(resultOf(round(2, 0), 2)).toBe('worked');
    expect(resultOf(round(2, 5), 2)).toBe('worked');
    expect(resultOf(round(15, 0), 16)).toBe('goesOn');
    expect(resultOf(round(16, 0), 16)).toBe('worked');
  });

  it('ends after eight outcomes, or as many as its limit', () => {
    expect(resultOf(round(0, 7), 2)).toBe('goesOn');
    expect(resultOf(round(0, 8), 2)).toBe('down');
    expect(resultOf(round(0, 15), 16)).toBe('goesOn');
    expect(resultOf(round(0, 16), 16)).toBe('down');
  });

  it('has worked where a quarter did, and is repeated where fewer did', () => {
    expect(resultOf(round(2, 6), 4)).toBe('worked');
    expect(resultOf(round(1, 7), 4)).toBe('repeat');
    expect(resultOf(round(4, 12), 16)).toBe('worked');
    expect(resultOf(round(3, 13), 16)).toBe('repeat');
  });

  it('in which one task failed again and again is repeated', () => {
    expect(resultOf(round(0, 8, false), 2)).toBe('repeat');
  });
});

describe('prolonged', () => {
  it('gives a new turn at the same limit, and nothing to others', () => {
    expect(prolonged(probing(4), 'me', NOW + 200, settings).breaker).toEqual({
      ...probing(4).breaker,
      untilMs: NOW + 500,
    });
    for (const lane of [probing(1, 'you'), open, openLane]) {
      expect(prolonged(lane, 'me', NOW, settings)).toBe(lane);
    }
  });
});

describe('ramped', () => {
  it('doubles after each clean round, and closes at full concurrency', () => {
    let lane = probing();
    const limits: unknown[] = [];
    while (lane.breaker.state === 'probing') {
      limits.push(lane.breaker.limit);
      lane = ramped(lane, 'me', NOW, 10, settings);
    }
    expect(limits).toEqual([1, 2, 4, 8]);
    expect(lane).toEqual({ breaker: { state: 'closed', sinceMs: NOW } });
  });

  it('gives a new turn with each round', () => {
    expect(ramped(probing(), 'me', NOW + 200, 10, settings).breaker).toMatchObject({
      limit: 2,
      untilMs: NOW + 500,
    });
  });

  it('is nothing for one whose turn it is not', () => {
    for (const lane of [probing(1, 'you'), open, openLane]) {
      expect(ramped(lane, 'me', NOW, 10, settings)).toBe(lane);
    }
  });
});

describe('a pause', () => {
  it('says when and by whom, and ends without a trace', () => {
    expect(paused(open, NOW, 'ops')).toEqual({ ...open, paused: { atMs: NOW, by: 'ops' } });
    expect(paused(open, NOW)).toEqual({ ...open, paused: { atMs: NOW } });
    expect(resumed(paused(open, NOW), NOW)).toEqual(open);
  });
});

describe('a document', () => {
  const HOUR_MS = 3_600_000;

  it('says nothing once its lane has been closed for an hour', () => {
    const closed = resumed(paused(openLane, NOW), NOW);
    expect(closed).toEqual({ breaker: { state: 'closed', sinceMs: NOW } });
    expect(saysNothing(closed, NOW + HOUR_MS - 1)).toBe(false);
    expect(saysNothing(closed, NOW + HOUR_MS)).toBe(true);
    expect(saysNothing(openLane, NOW + HOUR_MS)).toBe(true);
  });

  it('of a lane that is open, probing or paused says something for ever', () => {
    for (const lane of [open, probing(), paused(openLane, NOW)]) {
      expect(saysNothing(lane, NOW + 1000 * HOUR_MS)).toBe(false);
    }
  });
});

describe('readLaneState', () => {
  it('reads what was written', () => {
    const closed: LaneState = { breaker: { state: 'closed', sinceMs: NOW } };
    for (const lane of [openLane, closed, open, probing(4), paused(open, NOW, 'ops')]) {
      expect(readLaneState(JSON.parse(JSON.stringify(lane)))).toEqual(lane);
    }
  });

  it.each([
    undefined,
    null,
    7,
    'text',
    [],
    {},
    { breaker: null },
    { breaker: { state: 'open' } },
    { breaker: { state: 'ajar', untilMs: 5 } },
    { breaker: { state: 'probing', untilMs: 5, by: 7 } },
    { paused: null, breaker: { state: 'open', untilMs: 'soon' } },
  ])('takes %j for a closed lane', (value) => {
    expect(readLaneState(value)).toEqual(openLane);
  });

  it('mends counts that are none', () => {
    expect(readLaneState({ breaker: { state: 'open', untilMs: 5, openings: 'x' } })).toEqual({
      breaker: { state: 'open', untilMs: 5, openings: 0 },
    });
    const breaker = { state: 'probing', untilMs: 5, openings: 2, by: 'me', limit: -3 };
    expect(readLaneState({ breaker })).toEqual({ breaker: { ...breaker, limit: 1 } });
  });
});
