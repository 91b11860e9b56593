/** The whole service in made-up worlds, each from one seed. A failing seed replays. */
import { describe, expect, it } from 'vitest';
import { priorities } from '@redrive/notifications';
import { type Instance, World } from './world.ts';

const SEEDS = Number(process.env['REDRIVE_WORLDS'] ?? 60);
const first = Number(process.env['REDRIVE_WORLD'] ?? 0);
const finalStates = new Set(['DeliverySucceeded', 'PermanentFailure', 'Skipped', 'Expired']);
const NOTIFICATIONS = 4;
const STEPS = 30;
/** Calm, shaky, and worse than anybody has seen. */
const chances = [
  { fault: 0.02, crash: 0.005 },
  { fault: 0.1, crash: 0.02 },
  { fault: 0.25, crash: 0.05 },
];
const devices = ['d1', '__proto__', 'a.b'];

/** What the outside does: reports that are new, repeated, stale or late, successes, and time that goes on. */
async function step(world: World, instance: Instance): Promise<void> {
  const { service } = instance;
  const id = `n${Math.floor(world.random() * NOTIFICATIONS)}`;
  const deviceId = world.pick(devices);
  const attemptNumber = world.pick([1, 1, 1, 2, 3]);
  const report = { notificationId: id, deviceId, attemptNumber };
  switch (
    world.pick([
      'failure',
      'failure',
      'failure',
      'success',
      'time',
      'time',
      'long',
      'crash',
      'replay',
    ] as const)
  ) {
    case 'failure': {
      // Together, and repeated.
      const times = world.pick([1, 1, 2]);
      void Promise.all(Array.from({ length: times }, () => service.reportFailure(report))).catch(
        () => undefined,
      );
      break;
    }
    case 'success':
      if (world.chance(0.3)) void service.reportSuccess(report).catch(() => undefined);
      break;
    case 'replay':
      void service.replay(id, deviceId).catch(() => undefined);
      break;
    case 'crash':
      if (world.chance(world.chances.crash * 20)) instance.crash();
      break;
    case 'time':
      return world.clock.advance(Math.floor(world.random() * 60_000));
    case 'long':
      return world.clock.advance(Math.floor(world.random() * 3_600_000));
  }
  await world.clock.advance(world.pick([0, 0, 500]));
}

async function play(seed: number): Promise<World> {
  const world = new World({ seed, ...chances[seed % chances.length]! });
  await world.repository.open();
  for (let i = 0; i < NOTIFICATIONS; i++) {
    // A report may come again and again until it was taken.
    for (;;) {
      const { service } = await world.instance();
      const made = service.create({
        id: `n${i}`,
        recipient: { userId: 'u' },
        priority: priorities[i]!,
        notification: { title: 't', body: 'b' },
        source: 's',
        ttlMs: 6 * 3_600_000,
      });
      made.catch(() => undefined);
      await world.clock.advance(0);
      if ((await world.repository.find([`n${i}`]))[0]) break;
    }
  }
  for (let i = 0; i < STEPS; i++) await step(world, await world.instance());
  // From now on nothing fails, and every notification ends.
  world.chances = { ...world.chances, fault: 0, crash: 0 };
  await world.instance();
  for (let hour = 0; hour < 10; hour++) await world.clock.advance('1h');
  return world;
}

describe('the service in made-up worlds', () => {
  it(`loses nothing, repeats nothing without a crash, delivers nothing early, in ${SEEDS} worlds`, async () => {
    let deliveries = 0;
    let crashes = 0;
    for (let seed = first; seed < first + SEEDS; seed++) {
      const world = await play(seed);
      const faults = [...world.witness.faults];
      const ids = Array.from({ length: NOTIFICATIONS }, (_, i) => `n${i}`);
      for (const record of await world.repository.find(ids)) {
        if (record!.wakeAtMs !== undefined) faults.push(`${record!.id} still waits`);
        for (const [deviceId, { state, unpublished }] of Object.entries(record!.deliveries)) {
          const name = `${record!.id} ${deviceId}`;
          if (!finalStates.has(state)) faults.push(`${name} is ${state} for ever`);
          if (unpublished.length > 0) faults.push(`${name} has publications left`);
          if (state !== 'PermanentFailure') continue;
          const told = [...world.letters].some((letter) => letter.startsWith(`${name} `));
          if (!told) faults.push(`${name} failed without a dead letter`);
        }
      }
      expect({ seed, faults }).toEqual({ seed, faults: [] });
      deliveries += world.witness.deliveries.size;
      crashes += world.instances.length - 2;
    }
    // The worlds are not empty.
    expect(deliveries).toBeGreaterThan(SEEDS * 5);
    expect(crashes).toBeGreaterThan(SEEDS / 4);
  });
});
