import { describe, expect, it } from 'vitest';
import type { AuditEvent } from '../audit/audit-events.ts';
import { createRetryRates } from './retry-rates.ts';

function retry(category: unknown = 'API'): AuditEvent {
  return { event_type: 'retry_attempt', retry_category: category, timestamp: '' };
}

describe('retry rates', () => {
  it('are those of the last minute', () => {
    const rates = createRetryRates();
    for (let second = 0; second < 90; second++) rates.add(retry(), second * 1000);
    rates.add({ ...retry(), event_type: 'retry_exhausted' }, 89_000);
    expect(rates.rates(89_999)).toEqual([{ category: 'API', perMinute: 60 }]);
    expect(rates.rates(119_999)).toEqual([{ category: 'API', perMinute: 30 }]);
    expect(rates.rates(145_000)).toEqual([{ category: 'API', perMinute: 0 }]);
  });

  it('raise an alert above the limit, once, and say when it is over', () => {
    const rates = createRetryRates({ perMinute: 10 });
    for (let i = 0; i < 10; i++) rates.add(retry(), 1000);
    expect(rates.look(1000)).toEqual([]);
    rates.add(retry(), 31_000);
    const alert = { category: 'API', perMinute: 11, limit: 10 };
    expect(rates.look(31_000)).toEqual([{ state: 'raised', ...alert }]);
    expect(rates.look(32_000)).toEqual([]);
    // Nine are below the limit, and not far enough.
    for (let i = 0; i < 8; i++) rates.add(retry(), 61_000);
    expect(rates.look(61_000)).toEqual([]);
    expect(rates.look(95_000)).toEqual([{ state: 'over', ...alert, perMinute: 8 }]);
    for (let i = 0; i < 9; i++) rates.add(retry(), 96_000);
    expect(rates.look(96_000)).toEqual([{ state: 'raised', ...alert, perMinute: 17 }]);
  });

  it('raise alerts for each category by itself', () => {
    const rates = createRetryRates({ perMinute: 0 });
    rates.add(retry('A'), 0);
    rates.add(retry('B'), 0);
    expect(rates.look(0).map(({ category }) => category)).toEqual(['A', 'B']);
  });

  it('forget a category that is quiet, after its alert is over', () => {
    const rates = createRetryRates({ perMinute: 0 });
    rates.add(retry(), 0);
    rates.look(0);
    expect(rates.look(70_000)).toMatchObject([{ state: 'over', perMinute: 0 }]);
    expect(rates.rates(70_000)).toEqual([]);
  });

  it('are bounded: categories past the thousandth are one', () => {
    const rates = createRetryRates();
    for (let i = 0; i < 5000; i++) rates.add(retry(`c${i}`), 0);
    rates.add(retry(null), 0);
    const found = rates.rates(0);
    expect(found).toHaveLength(1001);
    expect(found.at(-1)).toEqual({ category: '(other)', perMinute: 4001 });
  });

  it('survive a clock that is set back, and jumps', () => {
    const rates = createRetryRates();
    rates.add(retry(), 1e9);
    rates.add(retry(), 5);
    expect(rates.rates(5)).toEqual([{ category: 'API', perMinute: 2 }]);
    expect(rates.rates(1e12)).toEqual([{ category: 'API', perMinute: 0 }]);
  });
});
