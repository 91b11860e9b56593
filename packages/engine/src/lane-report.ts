import type { Directory } from './directory.ts';
import type { LaneReport } from './engine.ts';
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
  const known = [...lanes.all.values()].map((lane) => reportOf(lane, agenda.get(lane.name)));
  return [...known, ...unserved];
}

function reportOf(lane: Lane, nextInMs: number | undefined): LaneReport {
  const { breaker, paused } = lane.state;
  const state = paused ? 'paused' : breaker.state;
  const next = nextInMs === undefined ? {} : { nextInMs };
  return { lane: lane.name, state, running: lane.running.size, ...next };
}
