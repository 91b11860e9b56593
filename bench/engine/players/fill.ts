import { createHash } from 'node:crypto';
import type { NewItem, NewTask, Store } from '@redrive/engine';
import { BATCH, timed, workOf } from '../player.ts';
import { uuidBytes } from './uuid.ts';

/** Why one of many failed, and where. */
export interface Cause {
  /** The name of a handler. */
  to: string;
  item: NewItem;
}

const MAX_ATTEMPTS = 5;

/**
 * Puts so many failed tasks into the inbox, each with its last attempt, and resolves to the ms that took. They come as
 * failures from a broker do, through `change`: the same rows as after a settlement, without the executions before it.
 */
export function fill(store: Store, items: number, causeOf: (n: number) => Cause): Promise<number> {
  const starts = Array.from({ length: Math.ceil(items / BATCH) }, (_, batch) => batch * BATCH);
  const write = async (start: number) => {
    const size = Math.min(BATCH, items - start);
    const failed = Array.from({ length: size }, (_, i) => failedTask(start + i, causeOf));
    await store.change(
      failed.map(({ task: { messageId, destination } }) => ({ messageId, destination })),
      (_task, _nowMs, index) => ({ result: undefined, ...failed[index] }),
    );
  };
  return timed(starts, write);
}

/** As a fingerprint looks. */
export function fingerprintOf(text: string): string {
  return createHash('sha1').update(text).digest('hex').slice(0, 16);
}

function failedTask(n: number, causeOf: (n: number) => Cause): { task: NewTask; item: NewItem } {
  const { to, item } = causeOf(n);
  const task: NewTask = {
    messageId: uuidText(),
    destination: { kind: 'handler', address: to },
    lane: `handler:${to}`,
    payload: Buffer.from(JSON.stringify(workOf(n))),
    status: 'failed',
    attempt: MAX_ATTEMPTS,
    maxAttempts: MAX_ATTEMPTS,
    uncounted: 0,
    delayMs: 0,
    generation: 0,
    claims: 0,
    arrived: false,
    cancelling: false,
    blocked: false,
    due: { inMs: 0 },
    failure: item.failure,
    record: { attempt: MAX_ATTEMPTS, failure: item.failure, durationMs: 12 },
  };
  return { task, item };
}

function uuidText(): string {
  const text = uuidBytes().toString('hex');
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`;
}
