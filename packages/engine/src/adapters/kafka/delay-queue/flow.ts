/** For tests: entries that go in and come out, each accounted for. */
import { expect, vi } from 'vitest';
import type { DelayHandler } from '../../../ports/delay-queue.ts';
import type { KafkaDelayQueue } from '../index.ts';

export interface Flow {
  readonly handed: Map<string, number>;
  readonly handler: DelayHandler;
  /** Schedules without a pause until `end`. */
  start(queue: KafkaDelayQueue): void;
  isWorking(): Promise<void>;
  /** Stops scheduling, waits for all that was acknowledged, and compares. Answers how many came more than once. */
  end(): Promise<number>;
}

const soon = { timeout: 90_000, interval: 20 };

export function flowOf(delaysMs: readonly number[]): Flow {
  const acknowledged = new Map<string, number>();
  const asked = new Set<string>();
  const handed = new Map<string, number>();
  const early: string[] = [];
  const ending = new AbortController();
  let flowing: Promise<void> | undefined;
  let last = 0;
  const handler: DelayHandler = async (batch) => {
    // The clock of the brokers is that of this machine.
    const nowMs = Date.now();
    for (const { id } of batch) {
      handed.set(id, (handed.get(id) ?? 0) + 1);
      const dueMs = Number(id.split(' ')[1]);
      if (nowMs < dueMs - 1) early.push(`${id} came ${dueMs - nowMs} ms early`);
    }
    return batch.map(() => ({ type: 'done' }));
  };
  return {
    handed,
    handler,
    start(queue) {
      flowing = (async () => {
        while (!ending.signal.aborted) {
          const entries = Array.from({ length: 20 }, () => {
            const delayMs = delaysMs[last % delaysMs.length]!;
            last += 1;
            const id = `${last} ${Date.now() + delayMs}`;
            return { id, delayMs, payload: Buffer.from(id) };
          });
          for (const { id } of entries) asked.add(id);
          try {
            await queue.schedule(entries);
            for (const { id, delayMs } of entries) acknowledged.set(id, delayMs);
          } catch (error) {
            expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' });
          }
        }
      })();
    },
    async isWorking() {
      const [before, out] = [acknowledged.size, handed.size];
      await vi.waitFor(() => {
        expect(acknowledged.size).toBeGreaterThan(before + 200);
        expect(handed.size).toBeGreaterThan(out + 200);
      }, soon);
    },
    async end() {
      ending.abort();
      await flowing;
      const missing = () => [...acknowledged.keys()].filter((id) => !handed.has(id)).length;
      await vi.waitFor(() => expect(missing()).toBe(0), soon);
      expect(early).toEqual([]);
      expect([...handed.keys()].filter((id) => !asked.has(id))).toEqual([]);
      return [...handed.values()].filter((times) => times > 1).length;
    },
  };
}
