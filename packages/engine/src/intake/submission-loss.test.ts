import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { createEngine } from '../engine.ts';

describe('what JSON would lose', () => {
  it('is refused by submit with its place, together with other faults', async () => {
    const engine = createEngine({ store: memory() });
    await expect(engine.submit('a', { tags: new Set([1]) })).rejects.toMatchObject({
      code: 'INVALID_PAYLOAD',
      faults: [{ path: 'payload.tags' }],
    });
    const both = engine.submit('a', { rate: NaN }, { maxAttempts: 0 });
    await expect(both).rejects.toMatchObject({
      faults: [{ path: 'payload.rate' }, { path: 'maxAttempts' }],
    });
    const cyclic: Record<string, unknown> = {};
    Object.assign(cyclic, { a: cyclic, b: cyclic });
    await expect(engine.submit('a', cyclic)).rejects.toMatchObject({
      code: 'INVALID_PAYLOAD',
      faults: [{ path: 'payload' }],
    });
    await engine.stop();
  });
});

it('every fault of a submission can be asked for, and nothing is stored', async () => {
  const engine = createEngine({ store: memory() });
  const given = { to: 'a', payload: { tags: new Set([1]) }, maxAttempts: 0, policy: 'nosuch' };
  expect(engine.faultsOf(given)).toMatchObject([
    { path: 'policy', code: 'UNKNOWN_POLICY' },
    { path: 'payload.tags', code: 'INVALID_PAYLOAD' },
    { path: 'maxAttempts' },
  ]);
  expect(engine.faultsOf({ to: 'a', payload: 1 })).toEqual([]);
  expect(await engine.list({ limit: 1 })).toEqual([]);
  await engine.stop();
});
