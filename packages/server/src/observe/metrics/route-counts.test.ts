import type { RouteEvent } from 'redrive';
import { describe, expect, it } from 'vitest';
import { createMetricSet } from './registry.ts';
import { RouteCounts } from './route-counts.ts';

function counting() {
  const set = createMetricSet();
  const counts = new RouteCounts(set);
  const lines = async (name: string) => {
    counts.write();
    const text = await set.registry.getSingleMetricAsString(name);
    return text.split('\n').filter((line) => line.startsWith(name));
  };
  return { counts, lines };
}

const event = (more: object) => more as unknown as RouteEvent;

describe('the numbers of routing', () => {
  it('count decisions by policy, result and provider', async () => {
    const { counts, lines } = counting();
    const decided = (result: string, provider_id: string | null) =>
      counts.heard(
        'llm',
        event({ type: 'decision', decision: { result, explanation: { provider_id } } }),
      );
    decided('ok', 'a');
    decided('ok', 'a');
    decided('retry', 'a');
    decided('error', null);
    counts.decidedInline('ok');
    expect(await lines('redrive_route_decisions_total')).toEqual([
      'redrive_route_decisions_total{policy="llm",result="ok",provider="a"} 2',
      'redrive_route_decisions_total{policy="llm",result="retry",provider="a"} 1',
      'redrive_route_decisions_total{policy="llm",result="error",provider=""} 1',
      'redrive_route_decisions_total{policy="inline",result="ok",provider=""} 1',
    ]);
    // A second page does not count twice.
    expect((await lines('redrive_route_decisions_total'))[0]).toMatch(/ 2$/);
  });

  it('count ends of calls, with few words for statuses', async () => {
    const { counts, lines } = counting();
    counts.heard('p', event({ type: 'success', provider: 'a' }));
    counts.heard('p', event({ type: 'failure', record: { provider: 'a', status: '503' } }));
    counts.heard('p', event({ type: 'attempt' }));
    for (const status of ['ok', '204', '429', 'rate_limit', '404', '4xx', 'timeout', 'my own']) {
      counts.ended('p', 'a', status);
    }
    const words = (await lines('redrive_route_outcomes_total')).map((line) =>
      line.replace(/.*status="(.*)"} (\d+)/, '$1 $2'),
    );
    expect(words).toEqual(['ok 3', '5xx 1', 'rate_limit 2', '4xx 2', 'timeout 1', 'other 1']);
  });

  it('show the state of providers that there are now', async () => {
    const { counts, lines } = counting();
    counts.states = () => [{ policy: 'p', provider: 'a', state: 'open' }];
    expect(await lines('redrive_route_provider_state')).toEqual([
      'redrive_route_provider_state{policy="p",provider="a",state="closed"} 0',
      'redrive_route_provider_state{policy="p",provider="a",state="open"} 1',
      'redrive_route_provider_state{policy="p",provider="a",state="half_open"} 0',
      'redrive_route_provider_state{policy="p",provider="a",state="cooling"} 0',
    ]);
    counts.states = () => [];
    expect(await lines('redrive_route_provider_state')).toEqual([]);
  });

  it('have at most a thousand series each', async () => {
    const { counts, lines } = counting();
    for (let i = 0; i < 1500; i++) counts.ended('p', `a${i}`, 'ok');
    const outcomes = await lines('redrive_route_outcomes_total');
    expect(outcomes).toHaveLength(1001);
    expect(outcomes.at(-1)).toBe(
      'redrive_route_outcomes_total{policy="other",provider="other",status="ok"} 500',
    );
    counts.states = () =>
      Array.from({ length: 300 }, (_, i) => ({ policy: 'p', provider: `a${i}`, state: 'closed' }));
    const states = await lines('redrive_route_provider_state');
    expect(states).toHaveLength(1001);
    expect(states.at(-1)).toMatch(/policy="other",provider="other",state="closed"} 50$/);
  });
});
