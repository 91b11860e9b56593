import type { Clock } from 'redrive';
import { DELAY_QUEUE_LANES } from '../delay-queue/store/entry-task.ts';
import type { Directory } from '../dispatch/directory.ts';
import type { LaneCounts, LaneQuery, LaneReport } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { laneStates } from './lane-state.ts';
import type { Lanes, LaneSettings } from './lanes.ts';
import { byName, justBefore } from '../model/names.ts';
import type { BlockedLane, LaneAgenda } from '../ports/schedule.ts';
import type { Store } from '../ports/store.ts';
import { checkedLimit } from '../intake/submission.ts';
import { laneOf } from '../model/task.ts';

const PAGE = 1000;
const USUAL_LIMIT = 1000;
/** Counting goes through all lanes: whoever asks sooner gets the same answer, and it takes a twentieth of the time at most. */
const COUNTS_FOR_MS = 5000;
const TIMES_ITS_DURATION = 20;
/** So many items that block others are looked at, and so many tasks behind each. */
const BLOCKED = { items: 1000, tasks: 1000 };

type Parts = {
  lanes: Lanes;
  directory: Directory;
  store: Pick<Store, 'capabilities' | 'lanes' | 'blocked'>;
  clock: Clock;
};

/** What waits where, and in which state the lanes are. */
export class LaneReporter {
  readonly #parts: Parts;
  #counts: Promise<LaneCounts> | undefined;
  #countAgainAt = -Infinity;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** In the order of their names. */
  async list(query: LaneQuery = {}): Promise<LaneReport[]> {
    const limit = checkedLimit(query.limit ?? USUAL_LIMIT);
    checkState(query.state);
    const found: LaneReport[] = [];
    for await (const report of this.#walk(query)) {
      if (!isWanted(report, query)) continue;
      found.push(report);
      if (found.length === limit) break;
    }
    return found;
  }

  counts(): Promise<LaneCounts> {
    if (this.#counts && this.#parts.clock.monotonic() < this.#countAgainAt) return this.#counts;
    this.#countAgainAt = Infinity;
    const counting = this.#count();
    // A failure is told to who asked, and not kept.
    counting.catch(() => (this.#counts = undefined));
    return (this.#counts = counting);
  }

  async #count(): Promise<LaneCounts> {
    const { clock } = this.#parts;
    const beganAt = clock.monotonic();
    const counts = { closed: 0, open: 0, probing: 0, paused: 0, NO_HANDLER: 0, blocked: 0 };
    for await (const { state, blocked } of this.#walk({})) {
      counts[state] += 1;
      if (blocked !== undefined) counts.blocked += 1;
    }
    const now = clock.monotonic();
    this.#countAgainAt = now + Math.max(COUNTS_FOR_MS, TIMES_ITS_DURATION * (now - beganAt));
    return counts;
  }

  /** Page by page, so that the event loop runs in between, however many lanes there are. */
  async *#walk(query: LaneQuery): AsyncGenerator<LaneReport> {
    const { after, prefix = '', kind } = query;
    const { lanes, store } = this.#parts;
    await lanes.refresh();
    const blocked = await this.#blocked();
    const within = kindPrefix(kind, prefix);
    const from = later(after ?? '', justBefore(within));
    const isIn = (name: string) =>
      name.startsWith(within) &&
      byName(name, from) > 0 &&
      // What waits there is consumed from a delay queue, not delivered by an engine.
      !name.startsWith(DELAY_QUEUE_LANES);
    const known = this.#known(blocked).filter(isIn).sort(byName);
    if (isKnownHere(query)) {
      yield* this.#walkKnown(known, query, blocked);
      return;
    }
    const others = known.values();
    let other = others.next();
    for (let place = from; ;) {
      const page = await store.lanes({ after: place, limit: PAGE });
      const isLast = page.length < PAGE;
      for (const { lane, inMs } of page) {
        for (; !other.done && byName(other.value, lane) < 0; other = others.next()) {
          yield this.#report(other.value, undefined, blocked);
        }
        if (other.value === lane) other = others.next();
        if (isIn(lane)) yield this.#report(lane, inMs, blocked);
      }
      const end = page.at(-1);
      if (isLast || !end || isPast(end, within)) break;
      place = end.lane;
    }
    for (; !other.done; other = others.next()) yield this.#report(other.value, undefined, blocked);
  }

  /** Whether something waits there, or this instance has to do with it, or all share something of it. */
  async knows(name: string): Promise<boolean> {
    const { store, lanes, directory } = this.#parts;
    const handler = name.startsWith('handler:') ? name.slice('handler:'.length) : undefined;
    if (handler !== undefined && directory.handlers.has(handler)) return true;
    if (lanes.all.has(name) || lanes.watched.of(name) || lanes.documents.known.has(name))
      return true;
    const [next] = await store.lanes({ after: justBefore(name), limit: 1 });
    return next?.lane === name;
  }

  /** Without the many lanes in which something only waits. */
  async *#walkKnown(
    names: readonly string[],
    query: LaneQuery,
    blocked: ReadonlyMap<string, BlockedLane>,
  ): AsyncGenerator<LaneReport> {
    for (const name of names) {
      if (!isWanted(this.#report(name, undefined, blocked), query)) continue;
      const [next] = await this.#parts.store.lanes({ after: justBefore(name), limit: 1 });
      yield this.#report(name, next?.lane === name ? next.inMs : undefined, blocked);
    }
  }

  async #blocked(): Promise<Map<string, BlockedLane>> {
    const { store } = this.#parts;
    if (!store.capabilities.ordering) return new Map();
    return new Map((await store.blocked(BLOCKED)).map((one) => [one.lane, one]));
  }

  /** Lanes that are of interest though perhaps nothing in them waits for its time. */
  #known(blocked: ReadonlyMap<string, BlockedLane>): string[] {
    const { lanes, directory } = this.#parts;
    const names = new Set([...lanes.all.keys(), ...lanes.watched.names, ...blocked.keys()]);
    for (const name of directory.handlers.keys()) {
      names.add(laneOf({ kind: 'handler', address: name }));
    }
    for (const [name, { state }] of lanes.documents.known) {
      if (state.paused || state.breaker.state !== 'closed') names.add(name);
    }
    return [...names];
  }

  #report(
    name: string,
    nextInMs: number | undefined,
    blocked: ReadonlyMap<string, BlockedLane>,
  ): LaneReport {
    const { lanes, directory } = this.#parts;
    const behind = blocked.get(name);
    const about = {
      ...(nextInMs === undefined ? {} : { nextInMs }),
      ...(behind ? { blocked: behind.tasks, blockedBy: behind.items } : {}),
    };
    // Not made here: it would keep settings from before its handler came.
    const known = lanes.all.get(name);
    const { breaker, paused } = (known ?? lanes.documents.of(name)).state;
    const by = paused?.by === undefined ? {} : { pausedBy: paused.by };
    const watched = lanes.watched.of(name);
    if (watched) {
      const state = paused ? 'paused' : 'closed';
      return { lane: name, state, running: watched.running(), ...about, ...by };
    }
    if (!directory.serves(name)) {
      const state = paused ? 'paused' : 'NO_HANDLER';
      return { lane: name, state, running: 0, ...about, ...by };
    }
    const probeInMs =
      breaker.state === 'open' ? Math.max(0, Math.ceil(breaker.untilMs - lanes.nowMs)) : 0;
    return {
      lane: name,
      state: paused ? 'paused' : breaker.state,
      running: known?.running.size ?? 0,
      ...about,
      ...by,
      ...(breaker.state === 'open' ? { probeInMs } : {}),
      limits: limitsOf(known?.settings ?? directory.settingsOf(name)),
    };
  }
}

function limitsOf({ concurrency, timeoutMs, failures, rate }: LaneSettings) {
  const ratePerSecond = rate ? { ratePerSecond: 1000 / rate.everyMs } : {};
  return { concurrency, timeoutMs, failures, ...ratePerSecond };
}

/** Whether all that it asks for has a document, or is blocked. */
function isKnownHere({ state, blocked }: LaneQuery): boolean {
  return blocked === true || state === 'open' || state === 'probing' || state === 'paused';
}

function isWanted({ lane, state, blocked }: LaneReport, query: LaneQuery): boolean {
  if (query.state !== undefined && query.state !== state) return false;
  if (query.blocked !== undefined && query.blocked !== (blocked !== undefined)) return false;
  return query.kind === undefined || kindOf(lane) === query.kind;
}

function kindOf(lane: string): string {
  const kind = lane.slice(0, lane.indexOf(':'));
  return kind === 'https' ? 'http' : kind;
}

/** Lanes of one kind begin alike, and lie together. */
function kindPrefix(kind: string | undefined, prefix: string): string {
  const start = kind === undefined || kind === 'http' ? (kind ?? '') : `${kind}:`;
  // Where the two contradict each other nothing is found.
  return start.startsWith(prefix) ? start : prefix;
}

function later(a: string, b: string): string {
  return byName(a, b) > 0 ? a : b;
}

/** Whether none of the names that begin so comes after it. */
function isPast({ lane }: LaneAgenda, prefix: string): boolean {
  return !lane.startsWith(prefix) && byName(lane, prefix) > 0;
}

function checkState(state: unknown): void {
  if (state === undefined || laneStates.includes(state as LaneReport['state'])) return;
  const message = `There is no lane state ${JSON.stringify(state)}. The states are ${laneStates.join(', ')}.`;
  const fault = { path: 'state', code: 'INVALID_TASK', message } as const;
  throw new EngineError('INVALID_TASK', message, { faults: [fault] });
}
