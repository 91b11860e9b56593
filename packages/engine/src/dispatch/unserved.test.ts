import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { createEngine } from '../engine.ts';
import type { EngineOptions } from '../engine-options.ts';

function stage(handlers: readonly string[], options: Partial<EngineOptions> = {}) {
  const said: { lane?: string; near?: string; message: string }[] = [];
  const nothing = () => undefined;
  const warn = (fields: object, message: string) => void said.push({ ...fields, message });
  const log = { debug: nothing, info: nothing, warn, error: nothing };
  const engine = createEngine({ store: memory(), log, ...options });
  for (const name of handlers) engine.handle(name, nothing);
  return { engine, said };
}

describe('a handler that this process does not have', () => {
  it('is said at once and once, with the one that may be meant, and its task is stored', async () => {
    const { engine, said } = stage(['invoice', 'mail']);
    const submitted = await engine.submit('invocie', { id: 7 });
    expect(submitted).toEqual({
      id: expect.any(String),
      status: 'accepted',
      warning:
        "There is no handler 'invocie' in this process, so the task waits for another one. Did you mean 'invoice'?",
    });
    expect(said).toEqual([
      {
        lane: 'handler:invocie',
        near: 'invoice',
        message: expect.stringMatching(/cannot deliver .* Did you mean 'invoice'\?$/),
      },
    ]);
    const many = await engine.submitMany([
      { to: 'invocie', payload: 1 },
      { to: 'invoice', payload: 1 },
    ]);
    expect(many).toMatchObject([{ warning: expect.any(String) }, { status: 'accepted' }]);
    expect(many[1]).not.toHaveProperty('warning');
    expect(said).toHaveLength(1);
    expect(await engine.list({ lane: 'handler:invocie', limit: 9 })).toHaveLength(2);
    await engine.stop();
  });

  it('is said of also where no other is near, without a guess', async () => {
    const { engine, said } = stage(['invoice']);
    expect(await engine.submit('shipments', 1)).not.toHaveProperty('warning');
    expect(said).toMatchObject([{ lane: 'handler:shipments' }]);
    expect(said[0]!.message).toMatch(/wait for a process that can\.$/);
    await engine.stop();
  });

  it('is nothing to say for a process that only submits', async () => {
    const { engine, said } = stage([]);
    expect(await engine.submit('invocie', 1)).not.toHaveProperty('warning');
    expect(said).toEqual([]);
    // One that delivers, and has no handler at all, does not do what was meant.
    await engine.start();
    await engine.submit('invocie', 1);
    expect(said).toMatchObject([{ lane: 'handler:invocie' }]);
    await engine.stop();
  });

  it('is also said by a process that leaves the delivery to others', async () => {
    const { engine, said } = stage(['invoice'], { dispatch: false });
    await engine.start();
    await engine.submit({ kind: 'queue', address: 'orders' }, 1);
    expect(said).toEqual([]);
    expect(await engine.submit('invocie', 1)).toHaveProperty('warning');
    await engine.stop();
  });

  it('is no longer said once it is registered, and nothing is said of a duplicate', async () => {
    const { engine } = stage(['invoice']);
    const late = { dedupeKey: 'a' };
    expect(await engine.submit('invoices', 1, late)).toHaveProperty('warning');
    expect(await engine.submit('invoices', 1, late)).toEqual({
      id: expect.any(String),
      status: 'duplicate',
    });
    engine.handle('invoices', () => undefined);
    expect(await engine.submit('invoices', 2)).not.toHaveProperty('warning');
    await engine.stop();
  });

  it('is said of a lane that is given for a handler', async () => {
    for (const handlers of [['mail'], []]) {
      const { engine } = stage(handlers);
      expect(await engine.submit('handler:mail', 1)).toHaveProperty(
        'warning',
        "There is no handler 'handler:mail' in this process, so the task waits for another one. Did you mean 'mail'?",
      );
      await engine.stop();
    }
  });

  it('is remembered for a hundred names at most', async () => {
    const { engine, said } = stage(['invoice']);
    for (let n = 0; n < 120; n++) await engine.submit(`other-${n}`, 1);
    expect(said).toHaveLength(100);
    await engine.stop();
  });
});

describe('a URL in a process without http()', () => {
  const warning =
    "This process cannot deliver to 'https://a.test', so the task waits for another one. Add http() to `deliveries`.";

  it('is answered with what is missing, before and after the start', async () => {
    const { engine, said } = stage(['mail']);
    expect(await engine.submit('https://a.test/hook', 1)).toMatchObject({ warning });
    await engine.start();
    expect(await engine.submit('https://a.test/hook', 1)).toMatchObject({ warning });
    expect(said).toMatchObject([
      { message: expect.stringMatching(/Add http\(\) to `deliveries`/) },
    ]);
    await engine.stop();
  });

  it('is said at the start by a process that had nothing to deliver until then', async () => {
    const { engine, said } = stage([]);
    expect(await engine.submit('https://a.test/hook', 1)).not.toHaveProperty('warning');
    expect(said).toEqual([]);
    await engine.start();
    expect(said).toMatchObject([{ lane: 'https://a.test' }]);
    await engine.stop();
  });

  it('is nothing to say where others deliver', async () => {
    const { engine, said } = stage(['mail'], { dispatch: false });
    await engine.start();
    expect(await engine.submit('https://a.test/hook', 1)).not.toHaveProperty('warning');
    expect(said).toEqual([]);
    await engine.stop();
  });
});
