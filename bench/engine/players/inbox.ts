import type { Engine, GroupQuery, ItemQuery } from '@redrive/engine';
import { timed, BATCH } from '../player.ts';
import { type Cause, fill, fingerprintOf } from './fill.ts';
import { RedrivePlayer, type Tasks } from './redrive.ts';

/** One question to the inbox, as data, since it is asked in another process. */
export type Question = { name: string } & (
  | { groups: Partial<GroupQuery> }
  | { items: Omit<ItemQuery, 'limit'> }
);

export interface Look {
  tookMs: number;
  /** What the page has. */
  found: number;
}

const LANES = 50;
const CAUSES = 4999;
/** What the oldest of an inbox are that stay open. */
export const KEPT_OPEN = 1000;
const PAGE = 100;

/** Half of all have one cause, an outage; the rest have thousands. */
const OUTAGE = fingerprintOf('outage');

export const groupQuestions: readonly Question[] = [
  { name: 'all', groups: {} },
  { name: 'of a lane', groups: { lane: 'handler:lane-7' } },
  { name: 'also without open items', groups: { all: true } },
  { name: 'one', groups: { fingerprint: OUTAGE } },
];

export const itemQuestions: readonly Question[] = [
  { name: 'open', items: { state: 'open' } },
  { name: 'in any state', items: {} },
  { name: 'of a large group', items: { state: 'open', fingerprint: OUTAGE } },
  { name: 'of a small group', items: { state: 'open', fingerprint: fingerprintOf('rule 7') } },
  { name: 'of a large lane', items: { state: 'open', lane: 'handler:lane-0' } },
  { name: 'of a small lane', items: { state: 'open', lane: 'handler:lane-7' } },
  { name: 'with a common text', items: { state: 'open', text: 'refused by rule' } },
  { name: 'of a class', items: { state: 'open', class: 'technical' } },
  { name: 'of a reason', items: { state: 'open', reason: 'EXHAUSTED' } },
];

/** It looks at a bounded number of items and then says where to go on. */
export const rareQuestion: Question = {
  name: 'with a text that none has',
  items: { state: 'open', text: 'no such text' },
};

/** Redrive with a large inbox that somebody looks at. */
export class InboxPlayer extends RedrivePlayer {
  #looking: Engine<Tasks> | undefined;

  async fill(items: number): Promise<number> {
    const store = this.storeHere();
    await store.open();
    const tookMs = await fill(store, items, causeOf);
    await store.close();
    return tookMs;
  }

  /** Resolves all but the oldest, a thousand at once, and gives the number of those that are left. */
  async resolveMost(): Promise<number> {
    const store = this.storeHere();
    await store.open();
    const newest = (await store.items({ limit: 1 })).items[0]?.id ?? 0;
    const starts: number[] = [];
    for (let id = KEPT_OPEN + 1; id <= newest; id += BATCH) starts.push(id);
    await timed(starts, (start) => {
      const ids = Array.from({ length: Math.min(BATCH, newest - start + 1) }, (_, i) => start + i);
      return store.act(ids, { type: 'resolve', by: 'bench' });
    });
    const left = await store.count({ state: 'open' });
    await store.close();
    return left;
  }

  /** Asks through an engine that is open already. */
  async look(question: Question): Promise<Look> {
    this.#looking ??= await this.create();
    const { inbox } = this.#looking;
    const startMs = performance.now();
    const page =
      'groups' in question
        ? await inbox.groups({ limit: PAGE, ...question.groups })
        : (await inbox.items({ limit: PAGE, ...question.items })).items;
    return { tookMs: performance.now() - startMs, found: page.length };
  }

  override async close(): Promise<void> {
    this.#looking = undefined;
    await super.close();
  }
}

function causeOf(n: number): Cause {
  if (n % 2 === 0) {
    const message = `connect ECONNREFUSED 10.0.0.${n % 250}:443`;
    const failure = { class: 'transient' as const, code: 'ECONNREFUSED', message };
    return { to: 'lane-0', item: { reason: 'EXHAUSTED', failure, fingerprint: OUTAGE } };
  }
  // Far apart, as they come in: neighbours have little in common.
  const number = (n * 7919) % CAUSES;
  const message = `order ${n} was refused by rule ${number}`;
  const failure = { class: 'technical' as const, code: `E_RULE_${number}`, message };
  const fingerprint = fingerprintOf(`rule ${number}`);
  return { to: `lane-${number % LANES}`, item: { reason: 'PERMANENT', failure, fingerprint } };
}
