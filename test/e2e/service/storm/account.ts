/** The accounts of a storm: what was sent, what came of it, and whether every departure from the plan has a cause. */
import { type Cause, causeOf, type Found, type Twice } from './causes.ts';
import type { ReviewItem, Row } from './evidence.ts';
import type { Journal, Receipt, Review, Sent, SentBack } from './journal.ts';
import { countsOf, type Kind, leastDelayMs } from './plans.ts';

export interface Evidence {
  journal: Pick<Journal, 'sent' | 'receipts' | 'sentBack' | 'reviews' | 'troubles'>;
  items: readonly ReviewItem[];
  rows: readonly Row[];
  /** The ids of messages that another account settles. */
  others?: ReadonlySet<string>;
}

/** A departure from the plan that has a cause. */
export interface Deviation {
  /**
   * `again`: the same count twice. `counted`: a count beyond the plan, since a failure was counted twice. `skipped`: a
   * count that was never delivered, for the same reason. `early`: by such a failure, and not by the one that its consumer
   * knows of. `review`: told twice in the review queue.
   */
  readonly type: 'again' | 'counted' | 'skipped' | 'early' | 'review';
  readonly number: number;
  readonly cause: Cause;
  /** How far the trouble is from it. */
  readonly distanceMs: number;
}

/** What was handed over by HTTP and goes to a receiver: through the services that share a database, or through the one with a file. */
export type HttpKind = 'http' | 'httpOfFile';

export interface KindAccount {
  sent: number;
  /** Nobody told its producer that the broker has it, and it is nowhere. */
  neverSent: number;
  taken: number;
  inReview: number;
  deliveries: number;
}

export interface Account {
  /** Everything that contradicts a promise. */
  faults: string[];
  kinds: Record<Kind | HttpKind, KindAccount>;
  deviations: Deviation[];
  /** Of messages whose producer said when they are due: how much later they came, sorted. */
  lateMs: number[];
}

/** What the database's time may differ from a time of ours: that is cut to whole ms, and both read one clock. */
const CLOCK_MS = 1;

interface Story {
  sent: Sent;
  receipts: Receipt[];
  sentBack: SentBack[];
  reviews: Review[];
  items: ReviewItem[];
  row: Row | undefined;
}

export function account({ journal, items, rows, others }: Evidence): Account {
  const { troubles } = journal;
  const result: Account = { faults: [], kinds: emptyKinds(), deviations: [], lateMs: [] };
  const receipts = Map.groupBy(journal.receipts, ({ number }) => number);
  const sentBack = Map.groupBy(journal.sentBack, ({ number }) => number);
  const ownReviews = journal.reviews.filter(({ id }) => !others?.has(id));
  const reviews = Map.groupBy(ownReviews, ({ number }) => number);
  const itemsOf = Map.groupBy(items, ({ message_id: id }) => id);
  const rowOf = new Map(rows.map((row) => [`${row.messageId} ${row.queue}`, row]));
  for (const sent of journal.sent) {
    const { number, id, queue } = sent.plan;
    const told = reviews.get(number) ?? [];
    const story: Story = {
      sent,
      receipts: receipts.get(number) ?? [],
      sentBack: sentBack.get(number) ?? [],
      reviews: told,
      // What could not be read has an id of its own, which only the review queue tells.
      items: itemsOf.get(told[0]?.id ?? id) ?? [],
      row: rowOf.get(`${id} ${queue}`),
    };
    settle(story, result, (twice) => causeOf(twice, troubles));
  }
  const known = new Set(journal.sent.map(({ plan }) => plan.number));
  for (const number of [...receipts.keys(), ...reviews.keys()]) {
    if (!known.has(number)) result.faults.push(`${number} was never sent`);
  }
  result.lateMs.sort((a, b) => a - b);
  return result;
}

function settle(story: Story, result: Account, causeFor: (twice: Twice) => Found): void {
  const { plan, isConfirmed } = story.sent;
  const { number, kind } = plan;
  const fault = (what: string) => void result.faults.push(`${number} (${kind}) ${what}`);
  const sums = result.kinds[kind];
  sums.sent += 1;
  sums.deliveries += story.receipts.length;
  const isNowhere = story.receipts.length + story.reviews.length + story.items.length === 0;
  if (isNowhere && !story.row) {
    if (isConfirmed) fault('was confirmed to its producer and is lost');
    else sums.neverSent += 1;
    return;
  }
  const isTaken =
    kind === 'taken' || (kind === 'vanishing' && story.items.length + story.reviews.length === 0);
  if (isTaken) settleTaken(story, sums, fault);
  else settleReviewed(story, sums, fault);
  for (const what of wrongReceipts(story)) fault(what);
  for (const what of early(story)) fault(what);
  for (const one of deviationsOf(story, causeFor)) {
    if (one.cause) result.deviations.push({ ...one, number, cause: one.cause });
    else
      fault(`${words[one.type]} without a cause (the nearest trouble is ${one.distanceMs} ms off)`);
  }
  const [first] = inOrder(story.receipts);
  if (story.sent.dueAtMs !== undefined && first) {
    result.lateMs.push(first.atMs - story.sent.dueAtMs);
  }
}

function settleTaken(story: Story, sums: KindAccount, fault: (what: string) => void): void {
  const { plan } = story.sent;
  const last = plan.retryCount + plan.failures + 1;
  if (story.receipts.some(({ count }) => count >= last)) sums.taken += 1;
  else fault(`was never delivered with count ${last}: its row is ${story.row?.status ?? 'gone'}`);
  const [item] = story.items;
  if (item) fault(`is in review as ${item.reason}`);
  if (story.reviews.length > 0) fault('was told of in the review queue');
  if (story.row?.status !== 'retried') fault(`has a row that is ${story.row?.status ?? 'gone'}`);
}

function settleReviewed(story: Story, sums: KindAccount, fault: (what: string) => void): void {
  const { plan } = story.sent;
  const [item, ...more] = story.items;
  if (item?.reason === plan.reason && item?.state === 'open' && more.length === 0) {
    sums.inReview += 1;
  } else {
    const found = story.items.map(({ reason, state }) => `${reason} ${state}`);
    fault(`has the items [${found.join()}] and not one for ${plan.reason}`);
  }
  if (!story.reviews.some(({ reason }) => reason === plan.reason)) {
    fault('was never told of in the review queue');
  }
  const wanted = plan.kind === 'unreadable' ? undefined : 'failed';
  if (story.row?.status !== wanted) fault(`has a row that is ${story.row?.status ?? 'gone'}`);
}

function wrongReceipts({ sent: { plan }, receipts }: Story): string[] {
  return receipts.flatMap(({ id, queue, isIntact, count }) => {
    const faults: string[] = [];
    if (id !== plan.id) faults.push(`came with the id ${id}`);
    if (queue !== plan.queue) faults.push(`came to ${queue}`);
    if (!isIntact) faults.push('came with another payload');
    if (!(count > plan.retryCount)) faults.push(`came with count ${count}`);
    return faults;
  });
}

function early({ sent, receipts, row }: Story): string[] {
  const faults: string[] = [];
  const say = (count: number, byMs: number) =>
    faults.push(`came ${byMs} ms early with count ${count}`);
  for (const { count, atMs } of receipts) {
    const isFirst = count === sent.plan.retryCount + 1;
    const dueAtMs = (isFirst ? sent.dueAtMs : undefined) ?? sent.atMs + leastDelayMs(count);
    if (atMs < dueAtMs) say(count, dueAtMs - atMs);
  }
  const last = inOrder(receipts).at(-1);
  if (last && row?.status === 'retried' && last.atMs + CLOCK_MS < row.dueAtMs) {
    say(last.count, row.dueAtMs - last.atMs);
  }
  return faults;
}

/** Deliveries that come too soon after the failure before them: another one has led to them. */
function tooSoon({ receipts, sentBack }: Story): Receipt[] {
  return receipts.filter(({ count, atMs }) => {
    const before = sentBack.filter((back) => back.count === count - 1);
    const fromMs = Math.min(...before.map((back) => back.atMs));
    return before.length > 0 && atMs < fromMs + leastDelayMs(count);
  });
}

type Unsettled = Found & Pick<Deviation, 'type'>;

function deviationsOf(story: Story, causeFor: (twice: Twice) => Found): Unsettled[] {
  const { sent, receipts, sentBack, reviews } = story;
  const byCount = Map.groupBy(inOrder(receipts), ({ count }) => count);
  const again = [...byCount.values()].flatMap((several) =>
    pairs(several).map(([first, second]): Unsettled => {
      const twice = betweenOf(first, second, 'publish');
      return { type: 'again', ...causeFor(twice) };
    }),
  );
  const told = pairs(inOrder(reviews)).map(([first, second]): Unsettled => {
    const twice = betweenOf(first, second, 'publish');
    // One that is no task may have been put into the inbox twice, at any time before it was told of.
    const isRaw = sent.plan.kind === 'unreadable' && twice.lost === 'publish';
    const lost = isRaw ? { ...twice, lost: 'inbox' as const, fromMs: sent.atMs } : twice;
    return { type: 'review', ...causeFor(lost) };
  });

  // Whatever was read from the retry queue was read before anything came of it, and perhaps once more.
  const came = inOrder([...receipts, ...reviews]);
  const read = [sent, ...sentBack].map(({ atMs: fromMs }) => {
    const next = came.find(({ atMs }) => atMs > fromMs);
    return { fromMs, toMs: next?.atMs ?? fromMs };
  });
  const counted = (type: 'counted' | 'skipped' | 'early', againMs: number): Unsettled => {
    // A failure that was delivered twice failed twice.
    if (again.length > 0) return { type, cause: 'failed twice', distanceMs: 0 };
    const found = read.map((span) => causeFor({ lost: 'intake', ...span, againMs }));
    const [nearest] = found.sort((a, b) => a.distanceMs - b.distanceMs);
    return { type, ...nearest! };
  };
  const planned = new Set(countsOf(sent.plan));
  // Its queue is gone: it went to review instead.
  const isUnroutable = sent.plan.kind === 'vanishing' && reviews.length > 0;
  return [
    ...again,
    ...told,
    ...[...byCount].flatMap(([count, [first]]) =>
      planned.has(count) ? [] : [counted('counted', first!.atMs)],
    ),
    ...[...planned].flatMap((count) =>
      byCount.has(count) || isUnroutable ? [] : [counted('skipped', Infinity)],
    ),
    ...tooSoon(story).map(({ atMs }) => counted('early', atMs)),
  ];
}

/** What was lost between the two: where the broker says that it handed it over before, its consumer's acknowledgement. */
function betweenOf(
  { atMs: fromMs }: Receipt | Review,
  { atMs: againMs, isRedelivered }: Receipt | Review,
  lost: 'publish',
): Twice {
  return isRedelivered
    ? { lost: 'consumer', fromMs, toMs: againMs, againMs }
    : { lost, fromMs, toMs: fromMs, againMs };
}

export function pairs<T>(all: readonly T[]): [T, T][] {
  return all.slice(1).map((one, i) => [all[i]!, one]);
}

const words: Record<Deviation['type'], string> = {
  again: 'was delivered twice with one count',
  counted: 'was delivered with a count beyond its plan',
  skipped: 'was not delivered with every count of its plan',
  early: 'came too soon after it failed',
  review: 'was told of twice in the review queue',
};

export function inOrder<T extends { atMs: number }>(all: readonly T[]): T[] {
  return all.toSorted((a, b) => a.atMs - b.atMs);
}

function emptyKinds(): Account['kinds'] {
  const none = () => ({ sent: 0, neverSent: 0, taken: 0, inReview: 0, deliveries: 0 });
  return {
    taken: none(),
    usedUp: none(),
    usesUp: none(),
    nowhere: none(),
    business: none(),
    unreadable: none(),
    vanishing: none(),
    http: none(),
    httpOfFile: none(),
  };
}
