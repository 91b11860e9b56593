import { reportFault } from '../system.ts';

/** Calls what the work does not depend on. If it throws or rejects, that is reported, never passed on. */
export function notify<Args extends unknown[]>(
  what: string,
  callback: (...args: Args) => unknown,
  ...args: Args
): void {
  try {
    const returned = callback(...args);
    if (isThenable(returned)) {
      Promise.resolve(returned).catch((error: unknown) => reportFault(`${what} failed`, error));
    }
  } catch (error) {
    reportFault(`${what} failed`, error);
  }
}

/** What `await` would wait for. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function';
}
