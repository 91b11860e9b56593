import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Published } from '../../ports/broker.ts';
import { type Batch, Ledger } from './ledger.ts';

const confirmed: Published = { outcome: 'confirmed' };
const failure = { class: 'transient' as const };

type Step =
  | { type: 'send'; count: number }
  | { type: 'return' | 'ack' | 'nack' | 'ackAll'; seq: number }
  | { type: 'giveUp'; batch: number };

const step = fc.oneof(
  fc.record({ type: fc.constant('send' as const), count: fc.integer({ min: 1, max: 5 }) }),
  fc.record({
    type: fc.constantFrom('return' as const, 'ack' as const, 'nack' as const, 'ackAll' as const),
    seq: fc.integer({ min: 0, max: 30 }),
  }),
  fc.record({ type: fc.constant('giveUp' as const), batch: fc.nat(5) }),
);

/** The same by hand: what each message should have been told. */
function expected(steps: readonly Step[]): (string | undefined)[] {
  const told: (string | undefined)[] = [];
  const returned = new Set<number>();
  const batches: number[][] = [];
  const tell = (index: number, word: string) => {
    if (index < told.length) told[index] ??= returned.has(index) ? 'unroutable' : word;
  };
  for (const one of steps) {
    if (one.type === 'send') {
      batches.push(Array.from({ length: one.count }, (_, i) => told.length + i));
      told.push(...Array.from({ length: one.count }, () => undefined));
    } else if (one.type === 'giveUp') {
      for (const index of batches[one.batch] ?? []) tell(index, 'unknown');
    } else if (one.seq > 0) {
      const index = one.seq - 1;
      if (one.type === 'return' && index < told.length) returned.add(index);
      if (one.type === 'ack') tell(index, 'confirmed');
      if (one.type === 'nack') tell(index, 'refused');
      if (one.type === 'ackAll') for (let i = 0; i <= index; i++) tell(i, 'confirmed');
    }
  }
  return told;
}

describe('a ledger', () => {
  it('answers each message once, by what the broker says of it and of no other', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
        const told: (string | undefined)[] = [];
        const batches: Batch[] = [];
        const done = new Set<Batch>();
        const ledger = new Ledger((batch) => done.add(batch));
        for (const one of steps) {
          switch (one.type) {
            case 'send': {
              const batch = { left: 0 };
              batches.push(batch);
              for (let i = 0; i < one.count; i++) {
                const index = told.length;
                expect(ledger.next).toBe(index + 1);
                told.push(undefined);
                ledger.add(({ outcome }) => {
                  expect(told[index]).toBeUndefined();
                  told[index] = outcome;
                }, batch);
              }
              break;
            }
            case 'return':
              ledger.returned(one.seq);
              break;
            case 'ack':
            case 'ackAll':
              ledger.settle(one.seq, one.type === 'ackAll', confirmed);
              break;
            case 'nack':
              ledger.settle(one.seq, false, { outcome: 'refused', failure });
              break;
            case 'giveUp':
              if (batches[one.batch]) {
                ledger.giveUp({ outcome: 'unknown', failure }, batches[one.batch]);
              }
              break;
          }
        }
        expect(told).toEqual(expected(steps));
        expect(ledger.size).toBe(told.filter((one) => one === undefined).length);
        for (const batch of batches) expect(done.has(batch)).toBe(batch.left === 0);
        ledger.giveUp({ outcome: 'lost', failure });
        expect([ledger.size, done.size]).toEqual([0, batches.length]);
      }),
    );
  });
});
