import { describe, expect, it } from 'vitest';
import { jsonLine, table } from './report.ts';
import type { Result } from './result.ts';

const heading = { suite: 'core', case: 'success', about: 'a first attempt that works' };
const result: Result = {
  metric: 'ns/op',
  redrive: 123.456789,
  peers: { bare: 100, cockatiel: 2000.4, 'async-retry': 2_500_000 },
  spread: { redrive: 0.031 },
  verdicts: [
    { target: 'at most 1.5 × a bare await', measured: '1.23 ×', met: true },
    { target: 'at least 20 × faster', measured: '16 ×', met: false },
  ],
  notes: ['to be taken with care'],
};

describe('jsonLine', () => {
  it('is one line with suite, case, metric, redrive and peers, and nothing else', () => {
    expect(jsonLine(heading, result)).toBe(
      '{"suite":"core","case":"success","metric":"ns/op","redrive":123.5,' +
        '"peers":{"bare":100,"cockatiel":2000,"async-retry":2500000}}',
    );
  });

  it('keeps every digit of what was counted', () => {
    const counted: Result = { metric: 'bytes', redrive: 1_234_567, peers: {} };
    expect(JSON.parse(jsonLine(heading, counted))).toMatchObject({ redrive: 1_234_567 });
  });
});

describe('table', () => {
  it('shows the fastest first, with its ratio to redrive, and marks redrive', () => {
    const [title, ...rows] = table(heading, result).split('\n');
    expect(title).toBe('core · success: a first attempt that works');
    expect(rows.slice(0, 4).map((row) => row.trim().split(/\s{2,}/))).toEqual([
      ['bare', '100 ns', '0.81 ×'],
      ['▸ redrive', '123 ns', '± 3 %', '1.00 ×'],
      ['cockatiel', '2.00 µs', '16 ×'],
      ['async-retry', '2.50 ms', '20250 ×'],
    ]);
  });

  it('shows the highest rate first', () => {
    const rates: Result = { metric: 'ops/s', redrive: 2e6, peers: { raw: 8e6, slow: 1e6 } };
    const names = table(heading, rates)
      .split('\n')
      .slice(1)
      .map((row) => /[a-z]+/.exec(row)?.[0]);
    expect(names).toEqual(['raw', 'redrive', 'slow']);
  });

  it('says of each target whether it was met', () => {
    const text = table(heading, result);
    expect(text).toContain('✓ met    at most 1.5 × a bare await: 1.23 ×');
    expect(text).toContain('✗ missed at least 20 × faster: 16 ×');
    expect(text).toContain('· to be taken with care');
  });

  it('gives no ratios to bytes around zero, and never shows minus nothing', () => {
    const retained: Result = { metric: 'bytes', redrive: 0.004, peers: { cockatiel: -0.001 } };
    const text = table(heading, retained);
    expect(text).not.toContain('×');
    expect(text).not.toContain('-0');
    expect(text).toContain('0.00 B');
  });
});
