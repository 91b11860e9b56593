import { claimShares, type WantingLane } from './claim-shares.ts';
import type { Executor } from './executor.ts';
import { type LostAgenda, newAgenda } from '../lanes/lane-rate.ts';
import type { Lane, Lanes } from '../lanes/lanes.ts';
import type { Claim, ClaimFrom } from '../ports/schedule.ts';
import type { Settler } from './settler.ts';
import { GROUP, Solo } from './solo.ts';

/** One claim takes at most so many. */
const MAX_CLAIM = 1000;
const MAX_CLAIM_LANES = 1000;
/** So many lanes whose time has come are looked at in one turn: there may be very many. */
const MAX_LOOKS = 2000;
/** Tasks are held in advance for at most so long: another instance might be idle. */
const AHEAD_MS = 1000;
/** Where a claim found nothing although something is due, it is locked by somebody: no use to ask at once. */
const BUSY_MS = 20;

export interface ClaimLimits {
  leaseMs: number;
  pollMs: number;
  /** Tasks leased at once in this instance, and their payloads. */
  maxHeld: number;
  maxHeldBytes: number;
}

/** What to claim next, and when: what is due by lane, and in turn with it what others have lost. Times are monotonic. */
export class ClaimPlan {
  readonly #lanes: Lanes;
  readonly #executor: Executor;
  readonly #settler: Settler;
  readonly #solo: Solo;
  readonly #limits: ClaimLimits;
  /** When the next lease may be over that nobody settled: of what runs here alone, and of all else. */
  readonly #lost = { alone: newAgenda(), others: newAgenda() };
  #wasLost = false;
  /** There were more lanes to look at than one turn allows. */
  #isCut = false;

  constructor(lanes: Lanes, executor: Executor, settler: Settler, solo: Solo, limits: ClaimLimits) {
    this.#lanes = lanes;
    this.#executor = executor;
    this.#settler = settler;
    this.#solo = solo;
    this.#limits = limits;
  }

  get maxBytes(): number {
    return this.#limits.maxHeldBytes - this.#executor.heldBytes;
  }

  /** What to claim now; undefined: nothing. */
  wanted(now: number): ClaimFrom | undefined {
    const { maxHeld } = this.#limits;
    const room = Math.min(maxHeld - this.#executor.held, MAX_CLAIM);
    if (this.#solo.isAlone || this.#settler.isTroubled || room <= 0 || this.maxBytes <= 0) {
      return undefined;
    }
    // First, since lanes whose time has come may have lost something too.
    const due = this.#due(now, room);
    const lost = this.#wasLost ? undefined : (this.#lostRated(now) ?? this.#lostOf(now));
    this.#wasLost = lost !== undefined;
    return lost ?? due;
  }

  /** What is heard of while a claim is under way came after it, perhaps: it must not be forgotten. */
  asked(from: ClaimFrom): void {
    if (from.kind === 'lost') this.#agendaOf(from).lostAt = Infinity;
    if (from.kind === 'due') for (const { lane } of from.lanes) this.#lanes.agenda.asked(lane);
  }

  failed(from: ClaimFrom, now: number): void {
    if (from.kind === 'lost') this.#agendaOf(from).lostAt = now;
    if (from.kind === 'due')
      for (const { lane } of from.lanes) this.#lanes.agenda.expect(lane, now);
  }

  answered(from: ClaimFrom, { tasks, nextInMs }: Claim, now: number): void {
    const got = new Set(tasks.map((task) => task.lane));
    const at = (inMs: number | undefined, isEmpty: boolean) =>
      inMs === undefined ? Infinity : now + (inMs === 0 && isEmpty ? BUSY_MS : inMs);
    if (from.kind === 'due') {
      for (const [i, { lane: name }] of from.lanes.entries()) {
        this.#lanes.agenda.expect(name, at(nextInMs[i], !got.has(name)));
        const lane = this.#lanes.all.get(name);
        if (lane) lane.hasBacklog = nextInMs[i] === 0 && got.has(name);
      }
    } else if (from.kind === 'lost') {
      const agenda = this.#agendaOf(from);
      agenda.knownAt = at(nextInMs[0], got.size === 0);
      const nextAt = Math.min(agenda.knownAt, now + this.#limits.pollMs);
      agenda.lostAt = Math.min(agenda.lostAt, nextAt);
    }
  }

  expectLost(at: number): void {
    const { alone, others } = this.#lost;
    alone.lostAt = Math.min(alone.lostAt, at);
    others.lostAt = Math.min(others.lostAt, at);
    for (const { rate } of this.#lanes.rated) rate.lost.lostAt = Math.min(rate.lost.lostAt, at);
  }

  /** When it will want something that it does not want now, as far as it is known. */
  nextAt(now: number): number {
    const { alone, others } = this.#lost;
    let at = Infinity;
    for (const one of [alone.lostAt, others.lostAt, this.#solo.freeAt]) {
      if (one > now && one < at) at = one;
    }
    for (const { rate } of this.#lanes.rated) {
      if (rate.lost.lostAt > now && rate.lost.lostAt < at) at = rate.lost.lostAt;
    }
    const { nextAt } = this.#lanes.agenda;
    // What is due already waits for something that wakes us: a slot, a settle, an answer.
    if (nextAt > now || this.#isCut) at = Math.min(at, Math.max(nextAt, now + 1));
    return at;
  }

  #due(now: number, room: number): ClaimFrom | undefined {
    const { agenda } = this.#lanes;
    const wanting: WantingLane[] = [];
    const look = (lane: Lane): void => {
      const limit = this.#roomIn(lane);
      const { name, hasBacklog } = lane;
      if (limit > 0) wanting.push({ lane: name, limit, hasBacklog });
    };
    for (const lane of agenda.due) {
      if (wanting.length >= MAX_CLAIM_LANES) break;
      look(lane);
    }
    let looks = 0;
    for (; wanting.length < MAX_CLAIM_LANES && looks < MAX_LOOKS; looks++) {
      const lane = agenda.takeNext(now);
      if (!lane) break;
      look(lane);
    }
    this.#isCut = looks === MAX_LOOKS;
    if (wanting.length === 0) return undefined;
    // Whoever was asked is due again after the others: a busy lane never starves another.
    return { kind: 'due', lanes: claimShares(wanting, room) };
  }

  /** Tasks that may have killed their worker are claimed a few at a time; others as many as can start. */
  #lostOf(now: number): ClaimFrom | undefined {
    const alone = now >= this.#lost.alone.lostAt && this.#isFree(now);
    const others = now >= this.#lost.others.lostAt;
    if (!alone && !others) return undefined;
    const lanes: Record<'alone' | 'others', string[]> = { alone: [], others: [] };
    let limit = 0;
    for (const lane of this.#lanes.all.values()) {
      const permit = this.#lanes.permit(lane);
      if (permit.may !== 'serve' || lane.rate) continue;
      const room = permit.limit - heldOf(lane);
      if (room <= 0) continue;
      const isSolo = Solo.concerns(lane.name);
      lanes[isSolo ? 'alone' : 'others'].push(lane.name);
      if (!isSolo) limit = Math.max(limit, room);
    }
    if (others && lanes.others.length > 0) return { kind: 'lost', lanes: lanes.others, limit };
    if (!alone || lanes.alone.length === 0) return undefined;
    return { kind: 'lost', lanes: lanes.alone, limit: GROUP };
  }

  /** Lanes with a rate are asked one by one, as far as there are slots: for all together there is only one limit. */
  #lostRated(now: number): ClaimFrom | undefined {
    for (const lane of this.#lanes.rated) {
      const { rate, queue, name } = lane;
      const isSolo = Solo.concerns(name);
      if (now < rate.lost.lostAt || (isSolo && !this.#isFree(now))) continue;
      const permit = this.#lanes.permit(lane);
      const room = permit.may === 'serve' ? permit.limit - heldOf(lane) : 0;
      // A slot is asked for only where it is known that something was lost: those of slow lanes are precious.
      const isKnown = now >= rate.lost.knownAt;
      const most = isKnown ? rate.claimable(room, queue.length) : rate.inHand(queue.length);
      const limit = Math.min(room, most, isSolo ? 1 : MAX_CLAIM);
      if (limit > 0) return { kind: 'lost', lanes: [name], limit };
    }
    return undefined;
  }

  #roomIn(lane: Lane): number {
    const room = this.#paceRoomIn(lane);
    return lane.rate ? lane.rate.claimable(room, lane.queue.length) : room;
  }

  /** What a lane may start now, and what it will start soon at its pace. */
  #paceRoomIn(lane: Lane): number {
    const permit = this.#lanes.permit(lane);
    if (permit.may === 'wait') this.#lanes.holdBack(lane, permit);
    if (permit.may !== 'serve') return 0;
    const held = heldOf(lane);
    if (permit.probing || Number.isNaN(lane.meanMs)) return permit.limit - held;
    const most = lane.settings.rate?.aheadMs ?? AHEAD_MS;
    const aheadMs = Math.min(most, this.#limits.leaseMs / 2);
    const pace = (permit.limit * aheadMs) / Math.max(lane.meanMs, 0.01);
    const ahead = Math.min(MAX_CLAIM, Math.floor(pace));
    // Not for every single one that ended: a claim for one costs as much as for many. What can start now waits no longer.
    return held - permit.limit > ahead / 2 ? 0 : permit.limit + ahead - held;
  }

  /** Whether something that must run alone may be taken on. */
  #isFree(now: number): boolean {
    return this.#solo.isFree(now) || !this.#isBusy(now);
  }

  #isBusy(now: number): boolean {
    if (this.#executor.running > 0 || this.#lanes.agenda.isDue(now)) return true;
    for (const lane of this.#lanes.queued) if (lane.queue.length > 0) return true;
    return false;
  }

  #agendaOf({ lanes }: Extract<ClaimFrom, { kind: 'lost' }>): LostAgenda {
    const name = lanes[0]!;
    const rate = this.#lanes.all.get(name)?.rate;
    return rate?.lost ?? this.#lost[Solo.concerns(name) ? 'alone' : 'others'];
  }
}

function heldOf(lane: Lane): number {
  return lane.running.size + lane.queue.length + lane.zombies;
}
