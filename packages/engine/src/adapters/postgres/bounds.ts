/** Numbers as far as PostgreSQL's types go: a value beyond would fail its whole batch, again and again. */

const MAX_INT4 = 2 ** 31 - 1;
/** From the year -1199 to the year 255000: a time, or a wait that is added to the present one. */
const MIN_MS = -1e14;
const MAX_MS = 8e15;

/** A count or a limit. Without end is as good as the largest. */
export function countOf(value: number): number {
  return Math.min(Math.max(Math.trunc(value), -MAX_INT4), MAX_INT4);
}

/** A time since the epoch, or a wait from now. */
export function boundedMs<T extends number | null | undefined>(ms: T): T {
  return ms == null ? ms : (Math.min(Math.max(ms, MIN_MS), MAX_MS) as T);
}

/** How long ago something was. */
export function agoMs<T extends number | null | undefined>(ms: T): T {
  return ms == null ? ms : (Math.min(Math.max(ms, 0), -MIN_MS) as T);
}

export function bytesUpTo(bytes: number): number {
  return Math.min(Math.trunc(bytes), Number.MAX_SAFE_INTEGER);
}

/** The number of a row, or where to go on from. */
export function idOf(id: number): number {
  return Math.min(Math.max(Math.trunc(id), 0), Number.MAX_SAFE_INTEGER);
}
