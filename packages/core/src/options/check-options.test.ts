import { describe, expect, it } from 'vitest';
import { auditStats, createAuditStats } from '../analysis/audit-stats.ts';
import { createRetryRates } from '../analysis/retry-rates.ts';
import { replayAudit } from '../audit/audit.ts';
import { createRetryManager } from '../categories/manager.ts';
import { createBreaker } from '../circuit/breaker.ts';
import { isConfigError } from '../errors.ts';
import { classify } from '../failure/classify.ts';
import { retryFetch } from '../fetch/retry-fetch.ts';
import { idempotentHandler } from '../idempotency/http/handler.ts';
import { idempotent } from '../idempotency/idempotent.ts';
import { idempotencyKey } from '../idempotency/key.ts';
import { memoryIdempotency } from '../idempotency/memory.ts';
import { checkIdempotency, clearIdempotency, recordResult } from '../idempotency/results.ts';
import { createBudget } from '../limits/budget.ts';
import { createBulkhead } from '../limits/bulkhead.ts';
import { definePolicy } from '../policy/policy.ts';
import { retrier, retry, retryable } from '../retry.ts';
import { decideRoute } from '../routing/decide-route.ts';
import { createRouter } from '../routing/router/router.ts';
import { memorySticky } from '../routing/router/sticky-store.ts';
import { defineRoutingPolicy } from '../routing/routing-policy.ts';
import { simulate } from '../simulate/simulate.ts';

const store = memoryIdempotency();
const routing = defineRoutingPolicy({ version: '1.0', providers: [{ name: 'a', weight: 1 }] });
const router = createRouter(routing, { providers: { a: () => 1 } });
const manager = createRetryManager();
const principal = () => 'somebody';

type Call = (options: never) => unknown;

/** Every public function with options: what it is called with, and the misspelt option with what is meant. */
const entries: [name: string, call: Call, slip: string, meant: string][] = [
  ['auditStats', (o) => auditStats([], o), 'fromms', 'fromMs'],
  ['createAuditStats', (o) => createAuditStats(o), 'polices', 'policies'],
  ['createRetryRates', (o) => createRetryRates(o), 'perMinutes', 'perMinute'],
  ['replayAudit', (o) => replayAudit([], o), 'maxList', 'maxListed'],
  ['createRetryManager', (o) => createRetryManager(o), 'categorys', 'categories'],
  ['execute', (o) => manager.execute('API_REQUEST', 'x', () => 1, o), 'payloads', 'payload'],
  ['manager.check', (o) => manager.idempotency.check('k', o), 'tenantID', 'tenantId'],
  ['manager.clear', (o) => manager.idempotency.clear('k', o), 'tenant_id', 'tenantId'],
  ['manager.record', (o) => manager.idempotency.record('k', 1, o), 'meta_data', 'metadata'],
  ['createBreaker', (o) => createBreaker(o), 'onchanged', 'onChange'],
  ['createBudget', (o) => createBudget(o), 'capcity', 'capacity'],
  ['createBulkhead', (o) => createBulkhead(o), 'maxqueues', 'maxQueue'],
  ['classify', (o) => classify(new Error('x'), o), 'rule', 'rules'],
  ['definePolicy', (o) => definePolicy(o), 'maxAttempt', 'maxAttempts'],
  ['retry', (o) => retry(() => 1, {}, o), 'sginal', 'signal'],
  ['retrier', (o) => retrier({}, o), 'sginal', 'signal'],
  ['a retrier', (o) => retrier({}, {})(() => 1, o), 'sginal', 'signal'],
  ['retryable', (o) => retryable(() => 1, {}, o), 'sginal', 'signal'],
  ['retryFetch', (o) => retryFetch('data:,x', {}, {}, o), 'lastReponse', 'lastResponse'],
  ['idempotent', (o) => idempotent(store, 'k', () => 1, o), 'paylod', 'payload'],
  ['checkIdempotency', (o) => checkIdempotency(store, 'k', o), 'storeTimeouts', 'storeTimeout'],
  ['recordResult', (o) => recordResult(store, 'k', 1, o), 'expireIn', 'expiresIn'],
  ['clearIdempotency', (o) => clearIdempotency(store, 'k', o), 'subjekt', 'subject'],
  ['idempotencyKey', (o) => idempotencyKey(o), 'tenantID', 'tenantId'],
  ['memoryIdempotency', (o) => memoryIdempotency(o), 'maxKey', 'maxKeys'],
  ['memorySticky', (o) => memorySticky(o), 'maxSession', 'maxSessions'],
  ['simulate', (o) => simulate({}, o), 'client', 'clients'],
  ['decideRoute', (o) => decideRoute(routing, {}, o), 'detaillevel', 'detailLevel'],
  ['defineRoutingPolicy', (o) => defineRoutingPolicy(routing, o), 'ids', 'id'],
  ['router.call', (o) => router.call(1, {}, o), 'seeds', 'seed'],
  ['router.decide', (o) => router.decide({}, o), 'detaillevel', 'detailLevel'],
  ['router.report', (o) => router.report(o), 'state', 'status'],
];

describe('every function with options', () => {
  it.each(entries)('refuses a misspelt option: %s', async (_, call, slip, meant) => {
    const error = await thrownBy(() => call({ [slip]: 1 } as never));
    expect(isConfigError(error) && error.message).toContain(
      `${slip}: ${isConfigError(error) && error.faults.find(({ path }) => path === slip)?.message}`,
    );
    expect(isConfigError(error) && error.message).toContain(`Did you mean '${meant}'?`);
  });

  // A key of nothing is INVALID_KEY.
  const others = entries.filter(([name]) => name !== 'idempotencyKey');
  it.each(others)('refuses what is no object with a coded error: %s', async (_, call) => {
    for (const wrong of [null, 'text', 5, []]) {
      const error = await thrownBy(() => call(wrong as never));
      expect([wrong, isConfigError(error) && error.message]).toEqual([
        wrong,
        expect.stringMatching(/is not an object|, not an object/),
      ]);
    }
  });

  it('names its faults all at once: retryFetch', async () => {
    const options = { lastReponse: 'throw', idempotent: 'yes', on: 5 } as never;
    const error = await thrownBy(() => retryFetch('data:,x', {}, {}, options));
    expect(isConfigError(error) && error.faults.map(({ path }) => path).sort()).toEqual([
      'idempotent',
      'lastReponse',
      'on',
    ]);
  });

  it('suggests options that are not data, too', async () => {
    const wrong = { principle: principal, store, principal } as never;
    await expect(
      thrownBy(() => idempotentHandler(() => new Response(), wrong)),
    ).resolves.toMatchObject({ faults: [{ path: 'principle', code: 'UNKNOWN_FIELD' }] });
    const misspelt = { methds: ['POST'], store, principal } as never;
    const error = await thrownBy(() => idempotentHandler(() => new Response(), misspelt));
    expect(String(error)).toContain("Did you mean 'methods'?");
    const noPolicy = createRouterOptions({ mayrepeat: () => true });
    expect(String(await thrownBy(noPolicy))).toContain("Did you mean 'mayRepeat'?");
    const audit = { to: () => {}, sucesses: true };
    const ofManager = await thrownBy(() => createRetryManager({ audit }));
    expect(String(ofManager)).toContain('audit.sucesses: There is no such option. Did you mean');
  });

  it('says how to call idempotentHandler without options', async () => {
    for (const wrong of [undefined, null]) {
      const error = await thrownBy(() => idempotentHandler(() => new Response(), wrong as never));
      expect(error).toMatchObject({ code: 'NOT_A_FUNCTION' });
      expect(String(error)).toContain('idempotentHandler(handler, { store, principal })');
    }
  });

  it('keeps the numbers of stores in their range', () => {
    expect(() => memorySticky({ maxSessions: 0 })).toThrow('maxSessions: 0 is not a whole number');
    expect(() => memoryIdempotency({ maxKeys: -1 })).toThrow('maxKeys: -1 is not a whole number');
  });

  it('does not send the options of others to the runtime of retry', () => {
    expect(() => createBudget({ clock: 1 } as never)).toThrow('clock: there is no such field.');
  });

  it('refuses work that is no function before the first attempt', async () => {
    const error = await thrownBy(() => manager.execute('API_REQUEST', 'x', 5 as never));
    expect(error).toMatchObject({ code: 'NOT_A_FUNCTION' });
  });
});

describe('a runtime', () => {
  it.each([
    ['retries', "Did you mean 'maxAttempts'? It counts the first execution too."],
    ['minTimeout', "Did you mean 'base'?"],
  ])('says that %s belongs to the policy', (name, hint) => {
    expect(() => retrier({}, { [name]: 3 })).toThrow(
      `${name}: there is no such field. ${hint} Give it in the policy, the argument before this one.`,
    );
  });
});

function createRouterOptions(more: object): () => unknown {
  return () => createRouter(routing, { providers: { a: () => 1 }, ...more });
}

async function thrownBy(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return error;
  }
  return undefined;
}
