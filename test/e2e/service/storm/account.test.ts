import { describe, expect, it } from 'vitest';
import { account, type Evidence } from './account.ts';
import type { ReviewItem, Row } from './evidence.ts';
import type { Receipt, Review, Sent, SentBack, Trouble, TroubleKind } from './journal.ts';
import { type Plan, planOf } from './plans.ts';

const find = (isIt: (plan: Plan) => boolean): Plan =>
  Array.from({ length: 100 }, (_, number) => planOf(number)).find(isIt)!;
const plain = find(({ kind, failures, retryCount, dueInMs }) => {
  return kind === 'taken' && failures + retryCount === 0 && dueInMs === undefined;
});
const timed = find(({ dueInMs }) => dueInMs !== undefined);
const failing = find(({ failures, kind }) => kind === 'taken' && failures === 1);
const usedUp = find(({ kind }) => kind === 'usedUp');
const unreadable = find(({ kind }) => kind === 'unreadable');

const sent = (plan: Plan, more: Partial<Sent> = {}): Sent => ({
  plan,
  atMs: 0,
  isConfirmed: true,
  ...more,
});
const came = (plan: Plan, count: number, atMs: number, more: Partial<Receipt> = {}): Receipt => ({
  number: plan.number,
  id: plan.id,
  queue: plan.queue,
  count,
  atMs,
  isRedelivered: false,
  isIntact: true,
  ...more,
});
const back = ({ number }: Plan, count: number, atMs: number): SentBack => ({
  number,
  count,
  atMs,
  isConfirmed: true,
});
const told = ({ number, id, reason }: Plan, atMs: number, more: Partial<Review> = {}): Review => ({
  number,
  id,
  reason: reason!,
  atMs,
  isRedelivered: false,
  ...more,
});
const item = ({ id, reason, queue }: Plan, more: Partial<ReviewItem> = {}): ReviewItem => ({
  id: 1,
  message_id: id,
  reason: reason!,
  state: 'open',
  queue,
  occurrences: 1,
  ...more,
});
const row = ({ id, queue }: Plan, status: string, dueAtMs = 0): Row => ({
  messageId: id,
  queue,
  status,
  dueAtMs,
});
const trouble = (what: TroubleKind, fromMs: number, toMs = fromMs): Trouble => ({
  what,
  fromMs,
  toMs,
});

type Story = Partial<Evidence['journal']> & Partial<Omit<Evidence, 'journal'>>;

function accountOf({ items = [], rows = [], ...journal }: Story) {
  const empty = { sent: [], receipts: [], sentBack: [], reviews: [], troubles: [] };
  return account({ journal: { ...empty, ...journal }, items, rows });
}

const good = {
  sent: [sent(plain)],
  receipts: [came(plain, 1, 1500)],
  rows: [row(plain, 'retried')],
};
const reviewed = {
  sent: [sent(usedUp)],
  reviews: [told(usedUp, 100)],
  items: [item(usedUp)],
  rows: [row(usedUp, 'failed')],
};
const twice = {
  sent: [sent(failing)],
  receipts: [came(failing, 1, 1500), came(failing, 2, 4000)],
  sentBack: [back(failing, 1, 1501)],
  rows: [row(failing, 'retried')],
};

describe('the account of a storm', () => {
  it.each<[string, Story]>([
    ['what was taken', good],
    ['what failed once and was taken', twice],
    ['what lies in review', reviewed],
    ['what nobody confirmed and nobody has', { sent: [sent(plain, { isConfirmed: false })] }],
    [
      'what nobody confirmed and came all the same',
      { ...good, sent: [sent(plain, { isConfirmed: false })] },
    ],
    [
      'what could not be read: its id is another',
      {
        sent: [sent(unreadable)],
        reviews: [told(unreadable, 100, { id: 'made' })],
        items: [item(unreadable, { message_id: 'made' })],
      },
    ],
  ])('has no fault for %s', (_, story) => {
    const { faults, deviations } = accountOf(story);
    expect({ faults, deviations }).toEqual({ faults: [], deviations: [] });
  });

  it.each<[string, Story, string]>([
    ['a message that is gone', { ...good, receipts: [], rows: [] }, 'is lost'],
    [
      'one that waits for ever',
      { ...good, receipts: [], rows: [row(plain, 'pending')] },
      'was never delivered with count 1',
    ],
    [
      'a row that is left over',
      { ...good, rows: [row(plain, 'pending')] },
      'has a row that is pending',
    ],
    [
      'one that is in review too',
      { ...good, items: [item(plain, { reason: 'WORKER_LOST' })] },
      'is in review as WORKER_LOST',
    ],
    [
      'another payload',
      { ...good, receipts: [came(plain, 1, 1500, { isIntact: false })] },
      'another payload',
    ],
    [
      'another queue',
      { ...good, receipts: [came(plain, 1, 1500, { queue: 'other' })] },
      'came to other',
    ],
    [
      'another id',
      { ...good, receipts: [came(plain, 1, 1500, { id: 'x' })] },
      'came with the id x',
    ],
    ['no count', { ...good, receipts: [came(plain, Number.NaN, 1500)] }, 'came with count NaN'],
    [
      'one ms too early',
      { ...good, receipts: [came(plain, 1, 999)] },
      'came 1 ms early with count 1',
    ],
    [
      'one ms before what its producer asked for',
      {
        sent: [sent(timed, { dueAtMs: 5000 })],
        receipts: [came(timed, 1, 4999)],
        rows: [row(timed, 'retried')],
      },
      'came 1 ms early',
    ],
    [
      'a second delivery too early',
      { ...twice, sentBack: [back(failing, 1, 2001)] },
      'came too soon after it failed without a cause',
    ],
    [
      'what came before it was due in the database',
      { ...good, rows: [row(plain, 'retried', 1502)] },
      'came 2 ms early',
    ],
    ['no item', { ...reviewed, items: [] }, 'not one for EXHAUSTED'],
    ['two items', { ...reviewed, items: [item(usedUp), item(usedUp)] }, 'not one for EXHAUSTED'],
    [
      'an item for another reason',
      { ...reviewed, items: [item(usedUp, { reason: 'TOO_FAR' })] },
      'TOO_FAR open',
    ],
    ['no review message', { ...reviewed, reviews: [] }, 'was never told of'],
    ['a message that nobody sent', { ...good, sent: [] }, 'was never sent'],
    [
      'a duplicate',
      { ...good, receipts: [came(plain, 1, 1500), came(plain, 1, 1600)] },
      'twice with one count without a cause',
    ],
    [
      'a count beyond the plan',
      { ...good, receipts: [came(plain, 1, 1500), came(plain, 2, 9000)] },
      'a count beyond its plan without a cause',
    ],
    [
      'a count that was left out',
      { ...twice, receipts: [came(failing, 2, 4000)] },
      'not delivered with every count',
    ],
    [
      'a review message twice',
      { ...reviewed, reviews: [told(usedUp, 1), told(usedUp, 9)] },
      'told of twice',
    ],
  ])('finds %s', (_, story, fault) => {
    expect(accountOf(story).faults.join('\n')).toContain(fault);
  });

  const duplicate = [came(plain, 1, 1500), came(plain, 1, 31_000)];

  it.each<[string, Story, string]>([
    ['a kill', { troubles: [trouble('service killed', 1600)] }, 'service killed'],
    ['a lost confirm', { troubles: [trouble('confirm lost', 1600)] }, 'confirm lost'],
    [
      'the nearest trouble',
      { troubles: [trouble('service killed', 0), trouble('broker cut', 1400)] },
      'broker cut',
    ],
    [
      'a restart that it came in',
      { troubles: [trouble('broker restarted', 0, 9000)] },
      'broker restarted',
    ],
  ])('excuses a duplicate by %s', (_, story, cause) => {
    const { faults, deviations } = accountOf({ ...good, receipts: duplicate, ...story });
    expect(faults).toEqual([]);
    expect(deviations).toMatchObject([{ type: 'again', cause }]);
  });

  it.each<[string, Story]>([
    ['a kill long after it', { troubles: [trouble('service killed', 4000)] }],
    [
      'a kill after both',
      {
        receipts: [came(plain, 1, 1500), came(plain, 1, 1600)],
        troubles: [trouble('service killed', 1700)],
      },
    ],
    ['a restart of the database', { troubles: [trouble('database killed', 1600)] }],
    ['a stop in order', { troubles: [trouble('service stopped', 1600)] }],
    [
      'a cut of the way to the service, where the broker says that its consumer had it',
      {
        receipts: [came(plain, 1, 1500), came(plain, 1, 1900, { isRedelivered: true })],
        troubles: [trouble('broker cut', 1600)],
      },
    ],
  ])('does not excuse a duplicate by %s', (_, story) => {
    const { faults } = accountOf({ ...good, receipts: duplicate, ...story });
    expect(faults).toHaveLength(1);
  });

  it('excuses a count beyond the plan where the failure before it came twice', () => {
    const receipts = [...twice.receipts, came(failing, 1, 31_000), came(failing, 3, 40_000)];
    const troubles = [trouble('service killed', 1600)];
    const { faults, deviations } = accountOf({ ...twice, receipts, troubles });
    expect(faults).toEqual([]);
    expect(deviations.map(({ type, cause }) => `${type}: ${cause}`)).toEqual([
      'again: service killed',
      'counted: failed twice',
    ]);
  });

  it('excuses a message that was used up by one failure that came twice, before it was ever delivered', () => {
    const usesUp = find(({ kind }) => kind === 'usesUp');
    const story = {
      sent: [sent(usesUp)],
      reviews: [told(usesUp, 40_000)],
      items: [item(usesUp)],
      rows: [row(usesUp, 'failed')],
    };
    const troubles = [trouble('service killed', 9000)];
    expect(accountOf({ ...story, troubles })).toMatchObject({
      faults: [],
      deviations: [{ type: 'skipped', cause: 'service killed' }],
    });
    expect(accountOf(story).faults).toHaveLength(1);
  });
});
