import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createMetricSet, describeMetrics } from './metrics/registry.ts';

const folder = new URL('../../../../docs/operations/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, folder), 'utf8');

const alerts = [...read('prometheus-alerts.yml').matchAll(/^ +expr:\s*'?(.*?)'?$/gm)].map(
  ([, expr]) => expr!,
);
const panels = [...read('grafana-dashboard.json').matchAll(/"expr": (".*")/g)].map(
  ([, expr]) => JSON.parse(expr!) as string,
);

/** By the name under which they are asked for. */
const known = new Map<string, ReadonlySet<string>>();
for (const { name, type, labels } of describeMetrics()) {
  if (type !== 'histogram') known.set(name, new Set(labels));
  else
    for (const end of ['bucket', 'count', 'sum'])
      known.set(`${name}_${end}`, new Set([...labels, 'le']));
}
for (const { name } of createMetricSet().registry.getMetricsAsArray()) {
  if (!known.has(name)) known.set(name, new Set());
}
/** Those that Prometheus gives to all. */
const everywhere = ['job', 'instance'];

describe('alerts and dashboard', () => {
  it('are there', () => {
    expect([alerts.length, panels.length]).toEqual([22, 29]);
  });

  it.each([...alerts, ...panels])('ask for what there is: %s', (expr) => {
    const asked = [
      ...expr.matchAll(
        /\b((?:redrive|retries|retry|criterion|cyoda|http|process|nodejs)_\w+)(\{[^}]*\})?/g,
      ),
    ];
    expect(asked.length).toBeGreaterThan(0);
    const labels = new Set<string>(everywhere);
    for (const [, name, matchers = ''] of asked) {
      expect(known.keys(), name).toContain(name);
      const own = [...everywhere, ...known.get(name!)!];
      for (const [, label] of matchers.matchAll(/(\w+)\s*(?:=~|!=|!~|=)/g))
        expect(own).toContain(label);
      for (const label of own) labels.add(label);
    }
    for (const [, list] of expr.matchAll(/\bby \(([^)]*)\)/g)) {
      for (const label of list!.split(/, */)) expect(labels).toContain(label);
    }
  });
});
