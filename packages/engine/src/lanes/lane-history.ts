/**
 * Tells an outage of a lane from flakiness, by the outcomes of its deliveries in this instance. Pure.
 *
 * A run of failures opens the breaker when the lane's own failure rate does not explain it. Outcomes arrive in the order
 * in which deliveries end, so a lane whose failures are much faster, or much slower, than its successes shows long runs
 * without being down. Two rules take that out: a failure that started before the last success did says nothing new, and
 * deliveries in flight that are older than the run may still succeed.
 */
export interface LaneHistory {
  /** How many outcomes are remembered, and how many of them are failures. Older ones weigh less. */
  readonly outcomes: number;
  readonly failures: number;
  /** When the last success started, in local monotonic time. */
  readonly workedAt: number;
  readonly run: FailureRun;
}

/** Failures since the last success. Repeated failures of one task count once. */
interface FailureRun {
  readonly length: number;
  /** The last of them was a failure of this task. */
  readonly taskId: number | undefined;
  /** When the latest of them started. */
  readonly startedAt: number;
  /** Whether the destination refused one of them before it ran. */
  readonly isRefused: boolean;
}

interface FailedDelivery {
  taskId: number;
  startedAt: number;
  /** The destination did not take it: that is never the task's own fault. */
  isRefused: boolean;
}

/** What decides how much is remembered, and how many failures it takes. */
interface HistorySettings {
  /** Failures in a row that open the breaker of a lane that works otherwise. */
  failures: number;
  concurrency: number;
}

/** A run that is this unlikely is an outage. */
const CHANCE = 1e-6;
/** With fewer outcomes than this nothing is known about the lane. */
const KNOWN = 10;
/** However often a lane fails, no more failures in a row are waited for. */
const MOST = 60;
/** The number of outcomes that count. In a wide lane more of them: its deliveries in flight end mixed when an outage begins. */
const SPAN = 100;
const SPAN_PER_DELIVERY = 10;

const noRun: FailureRun = Object.freeze({
  length: 0,
  taskId: undefined,
  startedAt: -Infinity,
  isRefused: false,
});

export const newHistory: LaneHistory = Object.freeze({
  outcomes: 0,
  failures: 0,
  workedAt: -Infinity,
  run: noRun,
});

export function afterSuccess(
  history: LaneHistory,
  startedAt: number,
  settings: HistorySettings,
): LaneHistory {
  const { outcomes, failures } = remembered(history, history.run.length, settings);
  const keep = keptShare(settings);
  return {
    outcomes: outcomes * keep + 1,
    failures: failures * keep,
    workedAt: Math.max(history.workedAt, startedAt),
    run: noRun,
  };
}

export function afterFailure(
  history: LaneHistory,
  { taskId, startedAt, isRefused }: FailedDelivery,
  settings: HistorySettings,
): LaneHistory {
  // The lane has worked since.
  if (startedAt < history.workedAt) return remembered(history, 1, settings);
  const { run } = history;
  const isRepeated = taskId === run.taskId && !isRefused;
  return {
    ...history,
    run: {
      length: run.length + (isRepeated ? 0 : 1),
      taskId,
      startedAt: Math.max(run.startedAt, startedAt),
      isRefused: run.isRefused || isRefused,
    },
  };
}

/** The breaker has changed: what failed before it did is dealt with, and is not the lane's usual failure rate. */
export function withoutRun(history: LaneHistory): LaneHistory {
  return history.run.length === 0 ? history : { ...history, run: noRun };
}

/** `older` counts the deliveries in flight that started before the latest failure of the run did. */
export function isOutage(
  history: LaneHistory,
  settings: HistorySettings,
  older: () => number,
): boolean {
  const { length, isRefused } = history.run;
  // One task that keeps failing is its own trouble, not that of its lane.
  if ((length < 2 && !isRefused) || length < failuresToOpen(history, settings, 0)) return false;
  return length >= failuresToOpen(history, settings, older());
}

/** How many failures in a row open the breaker, while `older` deliveries in flight may still succeed. */
function failuresToOpen(
  { outcomes, failures }: LaneHistory,
  settings: HistorySettings,
  older: number,
): number {
  const least = settings.failures;
  if (outcomes < knownFrom(settings)) return 2 * least + Math.min(older, 2 * least);
  // One standard deviation more than was seen, since what was seen is a sample.
  const share = Math.min((failures + Math.sqrt(failures)) / outcomes, 0.99);
  const unlikely = Math.ceil(Math.log(CHANCE) / Math.log(share));
  const inRow = Math.min(Math.max(unlikely, least), Math.max(MOST, least));
  // If all of the older ones succeed, so many failures go with them; twice that leaves room for chance.
  const odds = failures / Math.max(outcomes - failures, outcomes / 10);
  return inRow + Math.ceil(2 * older * odds);
}

function remembered(history: LaneHistory, failed: number, settings: HistorySettings): LaneHistory {
  const keep = keptShare(settings);
  const kept = keep ** failed;
  const added = (1 - kept) / (1 - keep);
  const { outcomes, failures } = history;
  return { ...history, outcomes: outcomes * kept + added, failures: failures * kept + added };
}

/** What remains of the weight of all outcomes when one more comes. */
function keptShare({ concurrency }: HistorySettings): number {
  return 1 - 1 / Math.max(SPAN, SPAN_PER_DELIVERY * concurrency);
}

/** The weight of `KNOWN` outcomes, of which the first weigh less already. */
function knownFrom(settings: HistorySettings): number {
  const keep = keptShare(settings);
  return (1 - keep ** KNOWN) / (1 - keep) - 1e-9;
}
