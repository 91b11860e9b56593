import { afterEach, describe, expect, it, vi } from 'vitest';
import { watchJob } from './bulk-watch.ts';
import type { Client } from '../client.ts';
import { CommandError, exits, type Io } from '../command.ts';
import { outputOf } from '../terminal/output.ts';

const job = {
  id: 7,
  action: 'replay',
  created_at: '2026-01-01T00:00:00Z',
  canary: [],
  total: 2,
  done: 1,
  skipped: 0,
  failed: 1,
  left: 0,
  underway: 0,
  taken: 0,
  back: 0,
};

afterEach(() => vi.restoreAllMocks());

/** A server that is away (undefined) or shows that state, each at its second. */
async function watch(...seen: readonly (readonly [atS: number, state: string | undefined])[]) {
  let looks = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => seen[Math.max(0, looks - 1)]![0] * 1000);
  const client = {
    get: () => {
      const [, state] = seen[looks++]!;
      return state === undefined
        ? Promise.reject(new CommandError('away', { exit: exits.unavailable }))
        : Promise.resolve({ ...job, state });
    },
    as: (_: unknown, answer: unknown) => answer,
  } as unknown as Client;
  const io = { out: () => undefined, err: () => undefined, env: {}, columns: 80, isTty: false };
  const output = outputOf(io as unknown as Io, false);
  const code = await watchJob(7, client, output, io as unknown as Io, new AbortController().signal);
  return { code, looks };
}

describe('watching a bulk job', () => {
  it('has patience with each time that the server is away', async () => {
    const { code, looks } = await watch(
      [0, undefined],
      [59, undefined],
      [60, 'running'],
      // More than a minute after the first time, but this one has only begun.
      [62, undefined],
      [121, undefined],
      [122, 'finished'],
    );
    expect(code).toBe(exits.ok);
    expect(looks).toBe(6);
  });

  it('has a minute of it', async () => {
    await expect(
      watch([0, 'running'], [10, undefined], [70, undefined], [71, undefined], [72, 'finished']),
    ).rejects.toThrow('away');
  });
});
