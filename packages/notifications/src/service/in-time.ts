import type { Clock } from 'redrive';

/** Rejects when it takes too long. What comes later changes nothing. */
export async function inTime<T>(
  clock: Clock,
  ms: number,
  what: string,
  work: Promise<T>,
): Promise<T> {
  let timer: unknown;
  const limit = new Promise<never>((_, reject) => {
    timer = clock.setTimer(() => reject(new Error(`${what} did not answer within ${ms} ms.`)), ms);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clock.clearTimer(timer);
  }
}
