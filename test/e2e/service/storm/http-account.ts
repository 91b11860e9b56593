/** The account of what was handed over by HTTP and goes to a receiver. It adds to that of the storm. */
import { type Account, type HttpKind, inOrder, pairs } from './account.ts';
import { causeOf } from './causes.ts';
import type { Trouble } from './journal.ts';

export interface HttpSent {
  readonly id: string;
  readonly atMs: number;
  /** The service has answered that it is stored. */
  isAccepted: boolean;
  /** It is due far in the future, and the service has answered that it is cancelled. */
  isCancelled: boolean;
}

/** A request that the receiver got. */
export interface HttpReceipt {
  readonly id: string;
  /** The number of the attempt, as its header says. */
  readonly attempt: number;
  readonly status: number;
  readonly atMs: number;
}

/** A failed attempt, as the service has written it down. */
export interface FailedAttempt {
  readonly attempt: number;
  readonly code: string | undefined;
  readonly durationMs: number;
}

export interface HttpEvidence {
  readonly sent: readonly HttpSent[];
  readonly receipts: readonly HttpReceipt[];
  readonly troubles: readonly Trouble[];
  /** The ids of what lies in the inbox, and the status of each task that the store has. */
  readonly inInbox: ReadonlySet<string>;
  readonly statusOf: ReadonlyMap<string, string>;
  /** Of what came again after it had worked: the attempts that failed by the service's own account. */
  readonly failedAttempts: ReadonlyMap<string, readonly FailedAttempt[]>;
}

/** The time limit of a delivery by HTTP in the service's defaults. */
const LIMIT_MS = 15_000;

/** Every accepted message was delivered, lies in the inbox or is cancelled; whatever came twice has a cause. */
export function accountHttp(evidence: HttpEvidence, kind: HttpKind, result: Account): void {
  const { sent, receipts, troubles, inInbox, statusOf, failedAttempts } = evidence;
  const sums = result.kinds[kind];
  const receiptsOf = Map.groupBy(receipts, ({ id }) => id);
  for (const [index, { id, isAccepted, isCancelled }] of sent.entries()) {
    const fault = (what: string) => void result.faults.push(`${id} (${kind}) ${what}`);
    const came = inOrder(receiptsOf.get(id) ?? []);
    const worked = came.filter(({ status }) => status < 300);
    sums.sent += 1;
    sums.deliveries += came.length;
    if (worked.length > 0) sums.taken += 1;
    if (inInbox.has(id)) sums.inReview += 1;
    if (isCancelled) {
      if (came.length > 0) fault('was cancelled, and delivered');
      if (statusOf.get(id) !== 'cancelled') fault(`was cancelled, and is ${statusOf.get(id)}`);
    } else if (worked.length === 0 && !inInbox.has(id)) {
      if (isAccepted) fault(`was accepted and is ${statusOf.get(id) ?? 'lost'}`);
      else sums.neverSent += 1;
    }
    for (const [first, second] of twice(came)) {
      const { atMs } = first;
      const failed = failedAttempts.get(id) ?? [];
      const { cause, distanceMs } = isLate(first, failed)
        ? { cause: 'answer late' as const, distanceMs: 0 }
        : causeOf({ lost: 'settle', fromMs: atMs, toMs: atMs, againMs: second.atMs }, troubles);
      if (cause) result.deviations.push({ type: 'again', number: index, cause, distanceMs });
      else
        fault(
          `worked at ${new Date(atMs).toISOString()}, and came again after ${second.atMs - atMs} ms without a cause (the nearest trouble is ${distanceMs} ms off): attempts ${first.attempt} and ${second.attempt}; failed by the service's account: ${JSON.stringify(failed)}`,
        );
    }
  }
}

/** Whoever waited for the answer had given up by then. */
function isLate({ attempt }: HttpReceipt, failed: readonly FailedAttempt[]): boolean {
  return failed.some(
    (one) => one.attempt === attempt && one.code === 'TIMEOUT' && one.durationMs >= LIMIT_MS,
  );
}

/** The ids of what came again after it had worked. */
export function repeatedIds(receipts: readonly HttpReceipt[]): string[] {
  const receiptsOf = Map.groupBy(receipts, ({ id }) => id);
  return [...receiptsOf].flatMap(([id, came]) => (twice(inOrder(came)).length > 0 ? [id] : []));
}

/** What came after it had worked. A failure may have the number of the one before: a probe of a lane that is down counts as none. */
function twice(came: readonly HttpReceipt[]): [HttpReceipt, HttpReceipt][] {
  return pairs(came).filter(([first]) => first.status < 300);
}
