/** What the tests on SQLite and on PostgreSQL have in common. */
import { type Account, account } from './account.ts';
import { allItems, allTasks, isWorkedOff } from './evidence.ts';
import type { Child, Fleet } from './fleet.ts';
import { type Place, type Plan, storeAt } from './job.ts';

/** Something of everything, for load. */
export const mixedPlans: Plan[] = [
  'works',
  'stumbles',
  'works',
  'fails',
  'works',
  'givesUp',
  'works',
  'works',
];

/** Waits until all is submitted and nothing is left to do, and settles the accounts. */
export async function settleAccounts(
  fleet: Fleet,
  place: Place,
  submitters: readonly Child[],
): Promise<Account> {
  await fleet.until('all is submitted', () => submitters.every(({ counts }) => counts.submitted));
  const store = await storeAt(place);
  await store.open();
  try {
    await fleet.until('all is worked off', () => isWorkedOff(store));
    // Who was away from the store for long may still have to learn that its lease was lost.
    await fleet.stop();
    const [tasks, items] = [await allTasks(store), await allItems(store)];
    return account({ children: fleet.records(), tasks, items });
  } finally {
    await store.close();
  }
}
