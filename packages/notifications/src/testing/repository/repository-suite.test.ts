import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { memoryNotifications } from '../../adapters/memory/index.ts';
import type { NotificationRepository } from '../../ports/repository.ts';
import { repositorySuite } from './repository-suite.ts';

type Break = (sound: NotificationRepository) => Partial<NotificationRepository>;

/** The cases that a repository fails which is sound but for some methods. */
async function failing(broken: Break): Promise<string[]> {
  const cases = repositorySuite({
    atomic: true,
    complete: true,
    durable: false,
    damaging: false,
    async open() {
      const sound = memoryNotifications();
      await sound.open();
      const bound = new Proxy(sound, {
        get: (target, name: keyof NotificationRepository) => target[name].bind(target),
      });
      const repository = Object.assign(Object.create(bound) as typeof sound, broken(sound));
      return { repository, close: () => sound.close() };
    },
  });
  const failed: string[] = [];
  for (const { name, skip, run } of cases) {
    if (skip === undefined) await run().catch(() => failed.push(name));
  }
  return failed;
}

describe('the suite of a repository', () => {
  it('passes one that is sound', async () => {
    expect(await failing(() => ({}))).toEqual([]);
  });

  it.each<[string, Break, string]>([
    [
      'writes without comparing versions',
      (sound) => ({
        async write(records) {
          const now = await sound.find(records.map(({ id }) => id));
          const next = records.map((record, i) => ({ ...record, version: now[i]?.version ?? 0 }));
          return sound.write(next);
        },
      }),
      'write: refuses a version that is not the stored one, and changes nothing',
    ],
    [
      'compares before it writes, and not at once',
      (sound) => ({
        async write(records) {
          const found = await sound.find(records.map(({ id }) => id));
          const fits = found.map((one, i) => one?.version === records[i]!.version);
          await setImmediate();
          for (const [i, record] of records.entries()) {
            const [one] = await sound.find([record.id]);
            if (fits[i]) await sound.write([{ ...record, version: one!.version }]);
          }
          return { records: fits, attempts: [] };
        },
      }),
      'concurrency: writes exactly one of 20 of one version',
    ],
    [
      'looks for an id before it creates, and not at once',
      (sound) => ({
        async create(records) {
          const known = await sound.find(records.map(({ id }) => id));
          await setImmediate();
          const created = await sound.create(records);
          return created.map((one, i) => ({ ...one, isNew: known[i] === undefined }));
        },
      }),
      'concurrency: creates one of 20 with one id',
    ],
    [
      'fails a batch for one stale record',
      (sound) => ({
        async write(records) {
          const found = await sound.find(records.map(({ id }) => id));
          const fits = found.every((one, i) => one?.version === records[i]!.version);
          return fits
            ? sound.write(records)
            : sound.write(records.map((one) => ({ ...one, version: 0 })));
        },
      }),
      'write: writes each of a batch by itself',
    ],
    [
      'stores a record that is written and not there',
      (sound) => ({
        async write(records) {
          await sound.create(records);
          return sound.write(records);
        },
      }),
      'write: refuses a record that is not there, and does not store it',
    ],
    [
      'says of every attempt that it is new',
      (sound) => ({
        async write(records, attempts = []) {
          const written = await sound.write(records, attempts);
          return { ...written, attempts: attempts.map(() => true) };
        },
      }),
      'attempts: keeps the first of one notification, device and number',
    ],
    [
      'adds attempts whatever becomes of their record',
      (sound) => ({
        async write(records, attempts = []) {
          const { records: written } = await sound.write(records);
          return { records: written, attempts: (await sound.write([], attempts)).attempts };
        },
      }),
      'write: leaves out the attempts of a record that was not written',
    ],
    [
      'adds only attempts of records that it wrote',
      (sound) => ({
        async write(records, attempts = []) {
          const given = attempts.filter((one) =>
            records.some(({ id }) => id === one.notificationId),
          );
          return sound.write(records, records.length > 0 ? given : attempts);
        },
      }),
      'write: adds attempts with records, and those of others too',
    ],
    [
      'writes records before it has looked at the attempts',
      (sound) => ({
        async write(records, attempts = []) {
          const { records: written } = await sound.write(records);
          const { attempts: added } = await sound.write([], attempts);
          return { records: written, attempts: added };
        },
      }),
      'limits: refuses an attempt that no repository takes, and stores nothing of its batch',
    ],
    [
      'pages by creation alone',
      (sound) => ({
        list: ({ before, ...query }) =>
          sound.list({ ...query, ...(before ? { before: { ...before, id: '' } } : {}) }),
      }),
      'queries: list: gives the newest first, by creation and then by the codes of the id',
    ],
    [
      'gives what is due in any order',
      (sound) => ({ due: async (now, limit) => (await sound.due(now, limit)).toReversed() }),
      'queries: due: gives those whose time has come, the earliest first',
    ],
    [
      'gives what is due a moment later',
      (sound) => ({ due: (now, limit) => sound.due(now - 1, limit) }),
      'queries: due: gives those whose time has come, the earliest first',
    ],
    [
      'keeps the last time of a device, not the latest',
      (sound) => ({
        async deactivate(devices) {
          await sound.activate(devices.map(({ deviceId }) => deviceId));
          await sound.deactivate(devices);
        },
      }),
      'devices: keeps the later time, whichever comes first',
    ],
    [
      'prunes what was written at the very time',
      (sound) => ({ prune: (before, limit) => sound.prune(before + 1, limit) }),
      'prune: deletes what is over and was last written before the time, with its attempts',
    ],
    [
      'counts wrongly what it prunes',
      (sound) => ({
        prune: async (before, limit) => Math.min(await sound.prune(before, limit), 1),
      }),
      'prune: deletes no more than the limit, the oldest first',
    ],
    [
      'drops fields that it does not know',
      (sound) => ({
        create: (records) =>
          sound.create(
            records.map((record) => {
              const { later: _, ...known } = record as typeof record & { later?: unknown };
              return known;
            }),
          ),
      }),
      'create: keeps every field, also those that the port does not know',
    ],
  ])('finds one that %s', async (_, broken, name) => {
    expect(await failing(broken)).toContain(name);
  });
});
