import { createRouter } from 'redrive';
import { type Contestant } from '../harness.ts';
import { race } from '../race.ts';
import type { Case } from '../result.ts';

/** Each in a process of its own: the one must not be measured with code that the engine has tuned for the other. */
export const routing = routerCase('router', 'without a timeout', {}, 2000);
export const routingTimed = routerCase(
  'router-timeout',
  'with a timeout per attempt',
  { timeout_ms: 30_000 },
  4000,
);

function routerCase(
  name: string,
  what: string,
  more: { timeout_ms?: number },
  limitNs: number,
): Case {
  return {
    name,
    about: `a call of a router ${what}, whose first provider answers; the provider awaits once`,
    async run(effort) {
      const bare = async () => `${await provider('x')}`;
      const contestants = [{ name: 'bare', call: bare, expected: 'x' }, contestant(more)];
      const result = await race(contestants, effort);
      const ns = result.redrive - (result.peers['bare'] ?? Number.NaN);
      return {
        ...result,
        verdicts: [
          {
            target: `at most ${limitNs / 1000} µs over the bare call`,
            measured: `${(ns / 1000).toFixed(2)} µs`,
            met: ns <= limitNs,
          },
        ],
        notes: ['bare: the provider function alone, awaited'],
      };
    },
  };
}

const settled = Promise.resolve();

async function provider(input: string): Promise<string> {
  await settled;
  return input;
}

function contestant(more: { timeout_ms?: number }): Contestant {
  const router = createRouter(
    {
      version: '1.0',
      providers: [
        { name: 'primary', weight: 60 },
        { name: 'secondary', weight: 40 },
        { name: 'reserve', weight: 0 },
      ],
      fallbacks: [
        { when: { status: ['timeout', '5xx'] }, to: 'secondary', retry: 2 },
        { when: { status: 'rate_limit' }, to: 'reserve', retry: 0 },
      ],
      circuit_breaker: { enabled: true },
      ...more,
    },
    { providers: { primary: provider, secondary: provider, reserve: provider } },
  );
  return { name: 'redrive', call: async () => (await router.call('x')).value, expected: 'x' };
}
