import { type DefinedPolicy, definePolicy, type Policy } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { layered, Policies } from './policies.ts';
import { newTask } from '../testing/fixtures.ts';
import type { Task } from '../model/task.ts';

const DAY_MS = 86_400_000;
const ofLane = definePolicy({ maxAttempts: 4, base: '1m' });

function stage(named: Record<string, Policy> = {}, store = memory({ clock: virtualClock() })) {
  const warnings: object[] = [];
  const nothing = () => undefined;
  const warn = (fields: object) => void warnings.push(fields);
  const log = { debug: nothing, info: nothing, warn, error: nothing };
  const policies = new Policies(store, log, named, lanesOf(ofLane));
  return { store, warnings, policies, resolve: resolver(policies) };
}

function lanesOf(policy: DefinedPolicy): ConstructorParameters<typeof Policies>[3] {
  const layer = { policy, origin: 'the policy of the lane' };
  return { policyOf: () => policy, policyLayers: () => [layer] };
}

function resolver(policies: Policies) {
  return (policy: string | Policy) => policies.resolve(policy, 'handler:a', 'the submit');
}

function taskOf(changes: Partial<Task> = {}): Task {
  const { due: _, ...fresh } = newTask();
  return { ...fresh, id: 1, dueAtMs: 0, visibleAtMs: 0, createdAtMs: 0, ...changes };
}

it('by default an error that nobody knows is worth a retry', () => {
  const policy = layered([]);
  expect(policy).toMatchObject({ maxAttempts: 4, base: 2000, cap: 60_000 });
  expect(policy.retryOn).toEqual(['transient', 'unknown']);
});

describe('a policy that a submit wants', () => {
  it('is one of those with a name, or is spelt out', () => {
    const { resolve } = stage({ patient: { maxAttempts: 20 } });
    expect(resolve('patient')).toMatchObject({ maxAttempts: 20, base: 200, maxRetryAfter: DAY_MS });
    expect(resolve({ maxAttempts: 2 }).maxAttempts).toBe(2);
  });

  it('is that of its lane with the fields that are written', () => {
    const { resolve } = stage();
    expect(resolve({ maxAttempts: 2 })).toMatchObject({ base: 60_000, maxAttempts: 2 });
    expect(resolve({})).toMatchObject({ base: 60_000, maxAttempts: 4 });
  });

  it('is as it stands where it says everything', () => {
    const { resolve } = stage();
    const whole = definePolicy({ maxAttempts: 2 });
    expect(resolve(whole)).toBe(whole);
    const wire = JSON.parse(JSON.stringify(whole)) as Policy;
    expect(resolve(wire).fingerprint).toBe(whole.fingerprint);
  });

  it('is merged once where it is written alike, and checked each time where it is not', () => {
    const { resolve } = stage();
    const one = resolve({ maxAttempts: 2 });
    expect(resolve({ maxAttempts: 2 })).toBe(one);
    expect(resolve({ maxAttempts: 2, base: undefined })).toBe(one);
    expect(resolve({ maxAttempts: 3 }).maxAttempts).toBe(3);
    const alive = { maxAttempts: 2, retryIf: () => true } as Policy;
    expect(() => resolve(alive)).toThrow('is not a field of a policy');
    expect(() => resolve({ maxAttempts: 2n } as object)).toThrow('whole number');
    expect(() => resolve(null as never)).toThrow('is not an object of options');
    const overrides = { 429: { maxAttempts: 5 } };
    expect(resolve({ overrides }).for('429')?.maxAttempts).toBe(5);
    for (let n = 0; n < 250; n++) expect(resolve({ base: n }).base).toBe(n);
    expect(resolve({ base: 1 }).base).toBe(1);
  });

  it('of one lane is not that of another', () => {
    const { store } = stage();
    const lanes = { a: definePolicy({ base: 1 }), b: definePolicy({ base: 2 }) };
    const of = (lane: string) => lanes[lane as 'a' | 'b'];
    const nothing = () => undefined;
    const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
    const policies = new Policies(
      store,
      log,
      {},
      {
        policyOf: of,
        policyLayers: (lane) => [{ policy: of(lane), origin: lane }],
      },
    );
    const bases = ['a', 'b', 'a'].map(
      (lane) => policies.resolve({ maxAttempts: 9 }, lane, '').base,
    );
    expect(bases).toEqual([1, 2, 1]);
  });

  it('that does not fit its lane is refused, with where both were written', () => {
    const { resolve } = stage();
    expect(() => resolve({ strategy: 'schedule' })).toThrow('strategy from the submit');
  });

  it('is refused where there is none of that name, with the nearest one', () => {
    const { resolve } = stage({ patient: { maxAttempts: 20 } });
    const unknown = { code: 'UNKNOWN_POLICY' };
    expect(() => resolve('pateint')).toThrow(expect.objectContaining(unknown));
    expect(() => resolve('pateint')).toThrow("Did you mean 'patient'?");
    expect(() => resolve('zzz')).toThrow('Name it in the option policies.');
  });

  it('is refused where its faults are, when the engine is made', () => {
    expect(() => stage({ broken: { maxAttempts: 0 } })).toThrow(
      expect.objectContaining({ code: 'INVALID_POLICY' }),
    );
  });
});

describe('a policy of a task', () => {
  it('is kept in the store once, and understood by another instance', async () => {
    const { policies, store } = stage();
    const policy = definePolicy({ maxAttempts: 7, base: '9s', retryOn: ['any'] });
    const fingerprint = await policies.keep(policy);
    await policies.keep(policy);
    const { documents } = await store.readState('policy:');
    expect(documents).toMatchObject([{ key: `policy:${fingerprint}`, version: 1 }]);

    const other = stage({}, store).policies;
    const task = taskOf({ policy: fingerprint, maxAttempts: 7 });
    await other.know([task]);
    expect(other.of(task)).toMatchObject({ maxAttempts: 7, base: 9000, retryOn: ['any'] });
    expect(other.of(task).fingerprint).toBe(fingerprint);
  });

  it('is that of its lane where it has none of its own', async () => {
    const { policies } = stage();
    await policies.know([taskOf()]);
    expect(policies.of(taskOf())).toBe(ofLane);
  });

  it('is that of its lane, and said so, where nobody can read it', async () => {
    const { policies, store, warnings } = stage();
    await store.writeState('policy:bad', { maxAttempts: 'many' }, 0);
    const task = taskOf({ policy: 'bad' });
    await policies.know([task, taskOf({ policy: 'gone' })]);
    expect(policies.of(task)).toBe(ofLane);
    expect(warnings).toMatchObject([{ policy: 'bad' }, { policy: 'gone' }]);
  });

  it('has the number of attempts of the task', () => {
    const { policies } = stage();
    const one = policies.of(taskOf({ maxAttempts: 9 }));
    expect(one).toMatchObject({ maxAttempts: 9, base: 60_000 });
    expect(policies.of(taskOf({ maxAttempts: 9 }))).toBe(one);
    expect(policies.of(taskOf({ maxAttempts: 0 })).maxAttempts).toBe(1);
  });

  it('that cannot be read for a moment is not given up: whoever asked tries again', async () => {
    const { policies, store } = stage();
    store.readState = () => Promise.reject(new Error('away'));
    await expect(policies.know([taskOf({ policy: 'some' })])).rejects.toThrow('away');
  });
});

it('the most attempts of a task are those of its most patient override', () => {
  const patient = definePolicy({
    maxAttempts: 4,
    overrides: { '429': { maxAttempts: 50 }, ECONNRESET: { base: 5 } },
  });
  const { store } = stage();
  const nothing = () => undefined;
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const policies = new Policies(store, log, {}, lanesOf(patient));
  expect(policies.mostAttempts(taskOf())).toBe(50);
  expect(policies.mostAttempts(taskOf({ maxAttempts: 60 }))).toBe(60);
  expect(stage().policies.mostAttempts(taskOf())).toBe(4);
});
