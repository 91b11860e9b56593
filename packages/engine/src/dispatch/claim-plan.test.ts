import { virtualClock } from 'redrive/testing';
import { expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { ClaimPlan } from './claim-plan.ts';
import type { Executor } from './executor.ts';
import { laneSettings } from '../engine-options.ts';
import { hostOf } from '../host.ts';
import { Lanes } from '../lanes/lanes.ts';
import type { Settler } from './settler.ts';
import { Solo } from './solo.ts';

it('looks at very many lanes in several turns, one right after the other', async () => {
  const clock = virtualClock();
  const store = memory({ clock });
  const settings = laneSettings({}, 30_000);
  const lanes = new Lanes(
    store,
    hostOf({ clock }),
    'me',
    () => settings,
    () => () => true,
    () => undefined,
  );
  const limits = { leaseMs: 30_000, pollMs: 5000, maxHeld: 5000, maxHeldBytes: 1e6 };
  const plan = new ClaimPlan(
    lanes,
    { held: 0, heldBytes: 0, running: 0 } as Executor,
    { isTroubled: false } as Settler,
    new Solo(clock, 30_000),
    limits,
  );
  const names = Array.from({ length: 5000 }, (_, n) => `paused-${n}`);
  for (const name of names) await store.writeState(`lane:${name}`, { paused: { atMs: 1 } }, 0);
  await lanes.refresh();
  for (const name of [...names, 'served']) lanes.agenda.expect(name, 0);

  const due = () => {
    const from = plan.wanted(0);
    return from?.kind === 'due' ? from.lanes.map(({ lane }) => lane) : [];
  };
  expect(due()).toEqual([]);
  expect(plan.nextAt(0)).toBe(1);
  expect(due()).toEqual([]);
  // What others lost in that lane is claimed in turn with what is due there.
  expect([...due(), ...due()]).toEqual(['served']);
  // All others wait until they are released.
  expect(plan.nextAt(0)).toBeGreaterThan(1);
});
