import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { metricsTable } from './metrics-page.ts';
import { describeMetrics } from './registry.ts';

const docs = new URL('../../../../../docs/', import.meta.url);
const page = readFileSync(new URL('reference/metrics.md', docs), 'utf8');

describe('the page of the metrics', () => {
  it('says what the metrics say of themselves', () => {
    const [, table] = /<!-- metrics -->\n\n([^]*)\n<!-- \/metrics -->/.exec(page) ?? [];
    expect(table).toBe(metricsTable());
  });

  it('names the four of the contract, with their labels', () => {
    expect(describeMetrics().slice(0, 4)).toMatchObject([
      { name: 'retries_scheduled_total', type: 'counter', labels: ['queue'] },
      { name: 'retries_executed_total', type: 'counter', labels: ['queue', 'status'] },
      { name: 'retries_exhausted_total', type: 'counter', labels: ['queue'] },
      { name: 'retry_queue_depth', type: 'gauge', labels: [] },
    ]);
  });
});
