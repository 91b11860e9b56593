import { describe, expect, it } from 'vitest';
import { account } from './account.ts';
import {
  accountHttp,
  type HttpEvidence,
  type HttpReceipt,
  type HttpSent,
  repeatedIds,
} from './http-account.ts';
import { Journal } from './journal.ts';

const sent = (more: Partial<HttpSent> = {}): HttpSent => ({
  id: 'a',
  atMs: 0,
  isAccepted: true,
  isCancelled: false,
  ...more,
});
const came = (atMs: number, more: Partial<HttpReceipt> = {}): HttpReceipt => ({
  id: 'a',
  attempt: 1,
  status: 200,
  atMs,
  ...more,
});

function settle(evidence: Partial<HttpEvidence>) {
  const result = account({ journal: new Journal(), items: [], rows: [] });
  const none = { sent: [sent()], receipts: [], troubles: [], failedAttempts: new Map() };
  accountHttp({ ...none, inInbox: new Set(), statusOf: new Map(), ...evidence }, 'http', result);
  return { ...result, sums: result.kinds.http };
}

describe('the account of what goes to a receiver', () => {
  it('has no fault where a message worked, failed before that, lies in the inbox or is cancelled', () => {
    expect(settle({ receipts: [came(5)] }).faults).toEqual([]);
    const failed = came(5, { status: 503 });
    expect(settle({ receipts: [failed, came(9, { attempt: 2 })] })).toMatchObject({
      faults: [],
      deviations: [],
      sums: { sent: 1, taken: 1, deliveries: 2 },
    });
    expect(settle({ receipts: [failed], inInbox: new Set('a') }).sums).toMatchObject({
      inReview: 1,
    });
    const statusOf = new Map([['a', 'cancelled']]);
    expect(settle({ sent: [sent({ isCancelled: true })], statusOf }).faults).toEqual([]);
  });

  it('finds what was accepted and is nowhere, and forgives what nobody has accepted', () => {
    expect(settle({}).faults).toEqual(['a (http) was accepted and is lost']);
    expect(settle({ receipts: [came(5, { status: 503 })] }).faults).toHaveLength(1);
    expect(settle({ sent: [sent({ isAccepted: false })] })).toMatchObject({
      faults: [],
      sums: { neverSent: 1 },
    });
  });

  it('takes a failure that comes again under its number for no duplicate', () => {
    const failed = came(5, { status: 503 });
    expect(settle({ receipts: [failed, { ...failed, atMs: 9 }, came(20)] }).faults).toEqual([]);
  });

  it('finds what was cancelled and delivered all the same', () => {
    const statusOf = new Map([['a', 'done']]);
    const cancelled = { sent: [sent({ isCancelled: true })], statusOf };
    expect(settle({ ...cancelled, receipts: [came(5)] }).faults).toHaveLength(2);
  });

  it('takes an answer after the time limit for a cause, where the service has written that down', () => {
    const receipts = [came(5), came(20_000, { attempt: 2 })];
    const failed = { attempt: 1, code: 'TIMEOUT', durationMs: 15_003 };
    const of = (more: object) =>
      settle({ receipts, failedAttempts: new Map([['a', [{ ...failed, ...more }]]]) });
    expect(of({})).toMatchObject({ faults: [], deviations: [{ cause: 'answer late' }] });
    for (const more of [{ attempt: 2 }, { code: 'ECONNRESET' }, { durationMs: 900 }]) {
      expect(of(more).faults).toHaveLength(1);
    }
    expect(repeatedIds([...receipts, came(9, { id: 'b' })])).toEqual(['a']);
  });

  it.each([
    ['the same attempt', came(40_000)],
    ['another attempt after one that worked', came(40_000, { attempt: 2 })],
  ])('finds %s once more, unless a service was killed near the first', (_, again) => {
    const receipts = [came(5), again];
    expect(settle({ receipts }).faults).toHaveLength(1);
    const troubles = [{ what: 'service killed', fromMs: 900, toMs: 2000 }] as const;
    expect(settle({ receipts, troubles })).toMatchObject({
      faults: [],
      deviations: [{ type: 'again', cause: 'service killed' }],
    });
    const later = [
      { what: 'database killed', fromMs: 100, toMs: 3000 },
      { what: 'service killed', fromMs: 9900, toMs: 11_000 },
    ] as const;
    expect(settle({ receipts, troubles: later }).faults).toEqual([]);
    expect(settle({ receipts, troubles: later.slice(1) }).faults).toHaveLength(1);
    const others = [{ what: 'database killed', fromMs: 900, toMs: 2000 }] as const;
    expect(settle({ receipts, troubles: others }).faults).toHaveLength(1);
  });
});
