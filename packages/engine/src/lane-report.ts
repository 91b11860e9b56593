import type { Directory } from './directory.ts';
import type { LaneLimits, LaneReport } from './engine.ts';
import type { Lane, Lanes } from './lanes.ts';
import type { Schedule } from './ports/schedule.ts';

/** What waits where, and in which state the lanes are. */
export async function reportLanes(
  lanes: Lanes,
  directory: Directory,
  schedule: Schedule,
): Promise<LaneReport[]> {
  await lanes.refresh();
  const waiting = await schedule.lanes({ limit: 1000 });
  const agenda = new Map(waiting.map(({ lane, inMs }) => [lane, inMs]));
  const unserved: LaneReport[] = [];
  for (const [lane, nextInMs] of agenda) {
    // Not made here: it would keep settings from before its handler came.
    if (directory.serves(lane)) lanes.get(lane);
    else unserved.push({ lane, state: 'NO_HANDLER', running: 0, nextInMs });
  }
  const known = [...lanes.all.values()].map((lane) =>
    reportOf(lane, agenda.get(lane.name), lanes.nowMs),
  );
  return [...known, ...unserved];
}

function reportOf(lane: Lane, nextInMs: number | undefined, nowMs: number): LaneReport {
  const { breaker, paused } = lane.state;
  return {
    lane: lane.name,
    state: paused ? 'paused' : breaker.state,
    running: lane.running.size,
    ...(nextInMs === undefined ? {} : { nextInMs }),
    ...(paused?.by === undefined ? {} : { pausedBy: paused.by }),
    ...(breaker.state === 'open' ? { probeInMs: Math.max(0, breaker.untilMs - nowMs) } : {}),
    limits: limitsOf(lane),
  };
}

function limitsOf({ settings }: Lane): LaneLimits {
  const { concurrency, timeoutMs, failures, rate } = settings;
  const ratePerSecond = rate ? { ratePerSecond: 1000 / rate.everyMs } : {};
  return { concurrency, timeoutMs, failures, ...ratePerSecond };
}
