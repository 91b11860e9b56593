import type { Line } from '../../../model/line.ts';
import type { Claim, ClaimFrom, ClaimRequest, Hint } from '../../../ports/schedule.ts';
import type { Task } from '../../../model/task.ts';
import { Params } from '../batch.ts';
import { abandonText, claimText, peekText } from './claim-text.ts';
import type { Database } from '../connection/database.ts';
import { HeldLines } from './lines.ts';
import type { Names } from '../names.ts';
import { claimedTask, numberOf, timeOf } from '../rows.ts';
import { Wake } from '../connection/wake.ts';

/** How soon to look again for what is due but locked by somebody: a wait without a signal for its end. */
const LOCKED_RETRY_MS = 20;
/** A claim of this many that got all that it asked for says `perhaps now`; a smaller one looks whether there is more. */
const SURELY_BUSY = 100;

/** Leases tasks. The usual claim is one short statement: planning a long one would take longer than a few tasks do. */
export class Claimer {
  readonly #database: Database;
  readonly #names: Names;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  claim(request: ClaimRequest): Promise<Claim> {
    return request.from.kind === 'due' ? this.#claimDue(request) : this.#claimFitting(request);
  }

  /** What is due again, in which lanes. */
  async abandon(lease: number): Promise<Hint | undefined> {
    const rows = await this.#database.queryAgain(abandonText(this.#names, 'alone'), [lease]);
    const lanes = rows.flatMap(([lane, key]) => (key === null ? [lane as string] : []));
    const lines = rows.flatMap(([lane, key]) =>
      key === null ? [] : [{ lane: lane as string, key: key as string }],
    );
    if (lines.length > 0) lanes.push(...(await this.#abandonOrdered(lease, lines)));
    return lanes.length === 0 ? undefined : { lanes: [...new Set(lanes)] };
  }

  /** What is in a line: it may not be its turn any more. A line that somebody has locked is left to the end of the lease. */
  #abandonOrdered(lease: number, lines: readonly Line[]): Promise<string[]> {
    return this.#database.transaction(async (session) => {
      const held = new HeldLines(this.#names, session);
      await held.take(lines);
      if (held.isEmpty) return [];
      const params = new Params();
      params.add(lease);
      const text = abandonText(this.#names, { notHeld: held.notHeld(params) });
      const rows = await session.query(text, params.values);
      const wake = new Wake();
      await held.advance(wake);
      return [...rows.map(([lane]) => lane as string), ...(wake.hint?.lanes ?? [])];
    });
  }

  async #claimDue(request: ClaimRequest): Promise<Claim> {
    const { from } = request;
    const { tasks, nowMs } = await this.#take(request, 'all');
    const counts = isFull(from, tasks);
    if (nowMs !== undefined && tasks.length >= SURELY_BUSY && counts.every(Boolean)) {
      return { tasks, nowMs, nextInMs: counts.map(() => 0) };
    }
    const look = await this.#peek(request);
    const isLeft = look.nextInMs.some((inMs, i) => inMs === 0 && !counts[i]);
    // Due and not taken: all of it together was more than the bytes allow, or somebody has locked it.
    if (tasks.length === 0 && isLeft) return this.#claimFitting(request);
    const nextInMs = look.nextInMs.map((inMs, i) => {
      const wasDue = inMs === 0 && nowMs !== undefined && look.atMs[i]! <= nowMs;
      return wasDue && !counts[i] ? LOCKED_RETRY_MS : inMs;
    });
    return { tasks, nowMs: nowMs ?? look.nowMs, nextInMs };
  }

  /** Takes as much as fits into the bytes. */
  async #claimFitting(request: ClaimRequest): Promise<Claim> {
    const { tasks, nowMs } = await this.#take(request, 'fitting');
    const look = await this.#peek(request);
    const nextInMs = look.nextInMs.map((inMs) =>
      inMs === 0 && tasks.length === 0 ? LOCKED_RETRY_MS : inMs,
    );
    return { tasks, nowMs: nowMs ?? look.nowMs, nextInMs };
  }

  /** Not sent again when its answer is lost: what it leased would be out of sight. `abandon` gives it back. */
  async #take(
    request: ClaimRequest,
    what: 'all' | 'fitting',
  ): Promise<{ tasks: Task[]; nowMs: number | undefined }> {
    const { lease, leaseMs } = request;
    const params = new Params();
    const text = claimText(this.#names, request, what, params);
    const rows = await this.#database.query(text, params.values);
    if (rows.length === 0) return { tasks: [], nowMs: undefined };
    const nowMs = timeOf(rows[0]!.at(-1));
    const tasks = rows.map((row) => claimedTask(row, lease, nowMs + leaseMs));
    // An UPDATE returns its rows in whatever order its plan has them.
    return { tasks: tasks.sort(byDueTime), nowMs };
  }

  /** How long until there is more; 0: it is due. */
  async #peek(
    request: ClaimRequest,
  ): Promise<{ nowMs: number; atMs: (number | undefined)[]; nextInMs: (number | undefined)[] }> {
    const params = new Params();
    const text = peekText(this.#names, request, params);
    const [now, ...rows] = await this.#database.queryAgain(text, params.values);
    const nowMs = timeOf(now![0]);
    const atMs = rows.map(([at]) => (at === null ? undefined : Math.ceil(numberOf(at) - 0.01)));
    return { nowMs, atMs, nextInMs: atMs.map((at) => at && Math.max(0, at - nowMs)) };
  }
}

function byDueTime(a: Task, b: Task): number {
  return a.dueAtMs - b.dueAtMs || a.id - b.id;
}

/** Of each lane, whether it gave all that it was asked for. */
function isFull(from: ClaimFrom, tasks: readonly Task[]): boolean[] {
  if (from.kind !== 'due') return [];
  const counts = new Map<string, number>();
  for (const { lane } of tasks) counts.set(lane, (counts.get(lane) ?? 0) + 1);
  return from.lanes.map(({ lane, limit }) => (counts.get(lane) ?? 0) >= limit);
}
