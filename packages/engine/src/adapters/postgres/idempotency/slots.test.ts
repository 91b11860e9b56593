import { describe, expect, it } from 'vitest';
import { Slots } from './slots.ts';

const { signal } = new AbortController();

describe('slots', () => {
  it('go to whoever waits first, and never to more than there are', async () => {
    const slots = new Slots(2);
    const order: number[] = [];
    const free = await slots.take(1000, signal);
    await slots.take(1000, signal);
    const third = slots.take(1000, signal).then((give) => {
      order.push(3);
      return give;
    });
    const fourth = slots.take(1000, signal).then(() => order.push(4));
    await new Promise(setImmediate);
    expect(order).toEqual([]);
    free();
    // To give it back twice gives nothing.
    free();
    const give = await third;
    await new Promise(setImmediate);
    expect(order).toEqual([3]);
    give();
    await fourth;
    expect(order).toEqual([3, 4]);
    // Two are taken still: what was handed on was not given back as well.
    await expect(slots.take(1, signal)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  it('are not waited for longer than one may', async () => {
    const slots = new Slots(1);
    const free = await slots.take(1, signal);
    await expect(slots.take(5, signal)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    free();
    await expect(slots.take(5, signal)).resolves.toBeTypeOf('function');
  });

  it('are not waited for after an abort, and are not lost by it', async () => {
    const slots = new Slots(1);
    const free = await slots.take(1, signal);
    const controller = new AbortController();
    const waiting = slots.take(60_000, controller.signal);
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    free();
    await expect(slots.take(5, signal)).resolves.toBeTypeOf('function');
  });
});
