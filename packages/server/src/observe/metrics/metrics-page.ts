/** The table of docs/reference/metrics.md, from what the metrics say of themselves. */
import { describeMetrics } from './registry.ts';

export function metricsTable(): string {
  const rows = describeMetrics().map(
    ({ name, type, labels, help }) =>
      `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`,
  );
  return ['| name | type | labels | what it says |', '|---|---|---|---|', ...rows, ''].join('\n');
}
