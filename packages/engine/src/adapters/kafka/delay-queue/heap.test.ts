import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DueHeap } from './heap.ts';

it('gives what is due first, and of those due together what came first', () => {
  const times = fc.array(fc.option(fc.nat(20), { nil: null, freq: 3 }));
  fc.assert(
    fc.property(times, (given) => {
      const heap = new DueHeap<{ dueMs: number; offset: number }>();
      const model: { dueMs: number; offset: number }[] = [];
      const popped: unknown[][] = [];
      for (const [offset, dueMs] of given.entries()) {
        if (dueMs !== null) {
          heap.push({ dueMs, offset });
          model.push({ dueMs, offset });
          model.sort((a, b) => a.dueMs - b.dueMs || a.offset - b.offset);
        } else {
          popped.push([heap.pop(), model.shift()]);
        }
        expect([heap.first, heap.size]).toEqual([model[0], model.length]);
      }
      for (const [one, other] of popped) expect(one).toEqual(other);
      while (model.length > 0) expect(heap.pop()).toEqual(model.shift());
      expect(heap.pop()).toBeUndefined();
    }),
  );
});
