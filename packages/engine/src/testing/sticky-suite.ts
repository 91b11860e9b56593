import { deepEqual, equal, rejects } from 'node:assert/strict';
import type { StickyStore } from 'redrive';
import { casesOf, type CaseTable, type ConformanceCase } from './suite.ts';

/** How the suite gets at the store that it examines. */
export interface StickySetup {
  /** A store without sessions, for one case. `now` is the wall clock that sessions expire by. */
  open(now: () => number): Promise<OpenedSticky>;
  /** Whether several stores, in several processes, have the same sessions. */
  shared?: boolean;
  /** Whether expired sessions can be counted. */
  counting?: boolean;
}

export interface OpenedSticky {
  store: StickyStore;
  /** Another store with the same sessions, where it is shared. */
  twin?: StickyStore;
  /** All sessions that take room, expired ones too, where they can be counted. */
  count?: () => Promise<number>;
  /** Of a store that can be closed. */
  closeStore?: () => Promise<void>;
  close(): Promise<void>;
}

interface Stage extends OpenedSticky {
  /** Ms since the epoch, as the store has it. */
  nowMs: () => number;
  pass: (ms: number) => void;
}

type Need = 'shared' | 'counting';

/** Every promise of the port `StickyStore`, one by one. */
export function stickySuite(setup: StickySetup): ConformanceCase[] {
  const { shared = false, counting = false } = setup;
  return casesOf<Stage, Need>({ sticky: cases }, { shared, counting }, async (body) => {
    let aheadMs = 0;
    const nowMs = () => Date.now() + aheadMs;
    const opened = await setup.open(nowMs);
    try {
      await body({ ...opened, nowMs, pass: (ms) => void (aheadMs += ms) });
    } finally {
      await opened.close();
    }
  });
}

const MINUTE = 60_000;

const cases: CaseTable<Stage, Need> = {
  'has no session that nobody has set': async ({ store }) => {
    equal((await store.get('k')) ?? undefined, undefined);
  },

  'gives back a session as it was set': async ({ store, nowMs }) => {
    const session = { provider: 'a', expires_at_ms: nowMs() + MINUTE };
    await store.set('k', session);
    deepEqual(await store.get('k'), session);
  },

  'keeps keys apart, whatever they are': async ({ store, nowMs }) => {
    const until = nowMs() + MINUTE;
    const keys = [
      'k',
      'K',
      'k ',
      '',
      '__proto__',
      `ünï 🚀 '"\\ %_*?[x]`,
      'k'.repeat(10_000),
      'a\0b',
    ];
    for (const [i, key] of keys.entries()) {
      await store.set(key, { provider: `p${i}`, expires_at_ms: until });
    }
    for (const [i, key] of keys.entries()) {
      equal((await store.get(key))?.provider, `p${i}`);
    }
  },

  'replaces a session, and its expiry with it': async ({ store, nowMs, pass }) => {
    await store.set('k', { provider: 'a', expires_at_ms: nowMs() + MINUTE });
    await store.set('k', { provider: 'b', expires_at_ms: nowMs() + 3 * MINUTE });
    pass(2 * MINUTE);
    equal((await store.get('k'))?.provider, 'b');
  },

  'has no session that has expired': async ({ store, nowMs, pass }) => {
    await store.set('k', { provider: 'a', expires_at_ms: nowMs() + MINUTE });
    pass(MINUTE - 10_000);
    equal((await store.get('k'))?.provider, 'a');
    pass(10_000);
    equal((await store.get('k')) ?? undefined, undefined);
  },

  'has no session that had expired when it was set, nor the one before': async ({
    store,
    nowMs,
  }) => {
    await store.set('k', { provider: 'a', expires_at_ms: nowMs() + MINUTE });
    await store.set('k', { provider: 'b', expires_at_ms: nowMs() - 1 });
    equal((await store.get('k')) ?? undefined, undefined);
  },

  'takes an expiry with a fraction of a millisecond': async ({ store, nowMs }) => {
    await store.set('k', { provider: 'a', expires_at_ms: nowMs() + MINUTE + 0.5 });
    equal((await store.get('k'))?.provider, 'a');
  },

  'deletes a session, and none twice': async ({ store, nowMs }) => {
    await store.set('k', { provider: 'a', expires_at_ms: nowMs() + MINUTE });
    await store.set('other', { provider: 'b', expires_at_ms: nowMs() + MINUTE });
    await store.delete('k');
    await store.delete('k');
    equal((await store.get('k')) ?? undefined, undefined);
    equal((await store.get('other'))?.provider, 'b');
  },

  'takes many at once': async ({ store, nowMs }) => {
    const until = nowMs() + MINUTE;
    const keys = Array.from({ length: 200 }, (_, i) => `k${i}`);
    await Promise.all(
      keys.map(async (key) => store.set(key, { provider: key, expires_at_ms: until })),
    );
    const found = await Promise.all(keys.map(async (key) => store.get(key)));
    deepEqual(
      found.map((session) => session?.provider),
      keys,
    );
  },

  'shows others what was set and deleted': {
    needs: 'shared',
    run: async ({ store, twin, nowMs }) => {
      await store.set('k', { provider: 'a', expires_at_ms: nowMs() + MINUTE });
      equal((await twin!.get('k'))?.provider, 'a');
      await twin!.delete('k');
      equal((await store.get('k')) ?? undefined, undefined);
    },
  },

  'rejects after it was closed': {
    needs: 'shared',
    run: async ({ store, closeStore }) => {
      await store.get('k');
      await closeStore!();
      await rejects(async () => store.get('k'), { code: 'STORE_UNAVAILABLE' });
    },
  },

  'does not keep expired sessions for ever': {
    needs: 'counting',
    run: async ({ store, count, nowMs, pass }) => {
      for (let i = 0; i < 50; i++) {
        await store.set(`k${i}`, { provider: 'a', expires_at_ms: nowMs() + MINUTE });
      }
      equal(await count!(), 50);
      pass(2 * MINUTE);
      await store.set('last', { provider: 'a', expires_at_ms: nowMs() + MINUTE });
      equal(await count!(), 1);
    },
  },
};
