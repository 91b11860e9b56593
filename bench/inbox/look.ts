import { Actor } from '../engine/actors.ts';
import { Grounds, type Place } from '../engine/grounds.ts';
import {
  groupQuestions,
  itemQuestions,
  KEPT_OPEN,
  type Question,
  rareQuestion,
} from '../engine/players/inbox.ts';
import { type Figure, figureOf, noiseNote, spreadOf } from '../engine/turns.ts';
import type { Effort } from '../harness.ts';
import { type Case, type Result, smallest, type Verdict } from '../result.ts';

const MAX_MS = 50;
const WARM_UP = 5;

const stores = {
  PostgreSQL: { player: 'inbox-postgres', ground: 'postgres' },
  SQLite: { player: 'inbox-sqlite', ground: 'file' },
} as const;

type StoreName = keyof typeof stores;
type InboxActor = Actor<'inbox-postgres' | 'inbox-sqlite'>;

export const groups: Case = {
  name: 'groups',
  about: 'the first page of groups beside a million items; the slowest question',
  run: (effort) => look(effort, groupQuestions),
};

export const list: Case = {
  name: 'list',
  about: 'the first page of items, by filters, of a million; the slowest question',
  run: (effort) => look(effort, itemQuestions, rareQuestion),
};

/** What was measured of one inbox. */
interface Finding {
  figures: Record<string, Figure>;
  worstMs: number;
  /** The first look at groups, which counts what was written until then. */
  firstMs: number;
  rareMs?: number;
}

async function look(
  effort: Effort,
  questions: readonly Question[],
  rare?: Question,
): Promise<Result> {
  const { backlog, rounds } = effort;
  const notes = [noiseNote()];
  await using grounds = new Grounds();
  const findings: Record<string, Finding> = {};
  for (const name of Object.keys(stores) as StoreName[]) {
    const { player, ground } = stores[name];
    const place = await grounds.place(ground);
    const actor: InboxActor = new Actor(player);
    try {
      await actor.ask('open', place.address);
      const filledMs = await actor.ask('fill', backlog);
      const ask = () => examine(actor, place, questions, rare, rounds);
      findings[`${name}`] = await ask();
      const left = await actor.ask('resolveMost');
      if (left !== Math.min(KEPT_OPEN, backlog)) throw new Error(`${left} items are still open`);
      findings[`${name}, most closed`] = await ask();
      notes.push(
        `${name}: filled with ${backlog.toLocaleString('en')} items in ${(filledMs / 1000).toFixed(0)} s`,
      );
      await actor.ask('close');
    } finally {
      await actor.end();
    }
  }
  return resultOf(findings, notes);
}

async function examine(
  actor: InboxActor,
  place: Place,
  questions: readonly Question[],
  rare: Question | undefined,
  rounds: number,
): Promise<Finding> {
  const { tookMs: firstMs } = await actor.ask('look', groupQuestions[0]!);
  await place.rest();
  const tookMs: Record<string, number[]> = {};
  for (let round = -WARM_UP; round < rounds; round++) {
    for (const question of questions) {
      const { tookMs: ms } = await actor.ask('look', question);
      if (round >= 0) (tookMs[question.name] ??= []).push(ms);
    }
  }
  const figures = Object.entries(tookMs).map(([name, all]) => [name, figureOf(all)] as const);
  return {
    figures: Object.fromEntries(figures),
    worstMs: Math.max(...Object.values(tookMs).flat()),
    firstMs,
    ...(rare ? { rareMs: (await actor.ask('look', rare)).tookMs } : {}),
  };
}

function resultOf(findings: Record<string, Finding>, notes: readonly string[]): Result {
  const slowest = Object.entries(findings).map(([name, { figures }]) => {
    const ms = Object.fromEntries(
      Object.entries(figures).map(([question, { median }]) => [question, -median]),
    );
    const question = smallest(ms);
    return { name, question, ...figures[question]! };
  });
  const [first, ...others] = slowest;
  return {
    metric: 'ms',
    redrive: first?.median ?? Number.NaN,
    peers: Object.fromEntries(others.map(({ name, median }) => [rowOf(name), median])),
    spread: spreadOf(slowest.map((one) => [rowOf(one.name), one] as const)),
    verdicts: slowest.map(({ name, question, median }): Verdict => ({
      target: `${name}: the first page under ${MAX_MS} ms`,
      measured: `${median.toFixed(1)} ms (${question})`,
      met: median < MAX_MS,
    })),
    notes: [...Object.entries(findings).map(([name, finding]) => noteOf(name, finding)), ...notes],
  };
}

/** As the other cases call them. */
function rowOf(name: string): string {
  const [store, closed] = name.split(', ');
  const row = store === 'SQLite' ? 'redrive-sqlite' : 'redrive';
  return closed === undefined ? row : `${row}-closed`;
}

function noteOf(name: string, { figures, worstMs, firstMs, rareMs }: Finding): string {
  const each = Object.entries(figures).map(
    ([question, { median }]) => `${question} ${median.toFixed(1)}`,
  );
  const rare = rareMs === undefined ? '' : `; a text that none has, one look: ${rareMs.toFixed(1)}`;
  return `${name}, ms: ${each.join(', ')}${rare}; the worst single one ${worstMs.toFixed(1)}; the first look after all was written ${firstMs.toFixed(0)}`;
}
