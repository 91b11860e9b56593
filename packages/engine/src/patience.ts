import { delayFor, type Policy } from 'redrive';
import type { Host } from './host.ts';

/** Pauses between tries of something that must succeed in the end: a store that is away comes back. */
const pauses: Policy = { base: '50ms', cap: '5s', jitter: 'equal' };

interface Persistence {
  host: Host;
  what: string;
  until: AbortSignal;
  /** Whether another try may help; always, unless given. */
  isWorthIt?: (error: unknown) => boolean;
}

/** Tries until it works or `until` aborts; then the last error is thrown. */
export async function persist<T>(
  work: () => Promise<T>,
  { host, what, until, isWorthIt = () => true }: Persistence,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (until.aborted || !isWorthIt(error)) throw error;
      const delayMs = delayFor(pauses, { attempt, random: host.random() });
      host.log.warn({ err: error, attempt, delayMs }, `${what} failed, trying again`);
      await pause(host, delayMs, until);
      if (until.aborted) throw error;
    }
  }
}

/**
 * Waits, or less when one of `until` aborts. Listens to each signal itself: Node holds a signal of `AbortSignal.any` in
 * a global set for as long as somebody listens to it, and with it an engine that never got to its stop.
 */
export function pause(host: Host, ms: number, ...until: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    if (until.some(({ aborted }) => aborted)) {
      resolve();
      return;
    }
    const end = () => {
      host.clock.clearTimer(timer);
      for (const signal of until) signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = host.clock.setTimer(end, ms);
    for (const signal of until) signal.addEventListener('abort', end);
  });
}

/** Whether it came about in that time, and before `until` aborted. */
export async function within(
  host: Host,
  ms: number,
  work: Promise<unknown>,
  until?: AbortSignal,
): Promise<boolean> {
  let isDone = false;
  const done = work.then(
    () => (isDone = true),
    (error: unknown) => host.log.error({ err: error }, 'stopping met an error'),
  );
  const limit = new AbortController();
  const signals = until ? [until, limit.signal] : [limit.signal];
  await Promise.race([done, pause(host, ms, ...signals)]);
  limit.abort();
  return isDone;
}

/** Each is closed, whatever becomes of the others; one that hangs is left behind. */
export async function closeAll(
  host: Host,
  ms: number,
  all: readonly (() => Promise<void>)[],
): Promise<void> {
  const faults: unknown[] = [];
  for (const close of all) {
    const closed = close().catch((error: unknown) => void faults.push(error));
    const isClosed = await within(host, ms, closed);
    if (!isClosed) host.log.error({}, 'something did not close in time, and was left behind');
  }
  if (faults.length > 0) throw faults[0];
}
