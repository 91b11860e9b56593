import { describe, expect, it } from 'vitest';
import { Coalescer } from './coalescer.ts';

type Limits = ConstructorParameters<typeof Coalescer<string, string>>[1];

/** Work that ends when it is told to, and calls that are made when a turn is over. */
function stage(limits: Partial<Limits> = {}) {
  const batches: { items: readonly string[]; end: (results?: string[] | Error) => void }[] = [];
  const deferred: (() => void)[] = [];
  const coalescer = new Coalescer<string, string>(
    (items) =>
      new Promise((resolve, reject) => {
        batches.push({
          items,
          end: (results = items.map((item) => item.toUpperCase())) =>
            results instanceof Error ? reject(results) : resolve(results),
        });
      }),
    {
      maxItems: 3,
      maxBytes: 10,
      bytesOf: (item) => item.length,
      maxUnderway: 1,
      defer: (callback) => deferred.push(callback),
      ...limits,
    },
  );
  const turn = async () => {
    for (const callback of deferred.splice(0)) callback();
    await Promise.resolve();
    await Promise.resolve();
    await Promise.resolve();
  };
  const items = () => batches.map((batch) => batch.items);
  return { coalescer, batches, items, turn };
}

describe('calls', () => {
  it('made in one turn go together, each with its own answer', async () => {
    const { coalescer, batches, items, turn } = stage();
    const answers = Promise.all([coalescer.add('a'), coalescer.add('b')]);
    expect(items()).toEqual([]);
    await turn();
    expect(items()).toEqual([['a', 'b']]);
    batches[0]!.end();
    expect(await answers).toEqual(['A', 'B']);
  });

  it('collect while others are under way', async () => {
    const { coalescer, batches, items, turn } = stage();
    void coalescer.add('a');
    await turn();
    void coalescer.add('b');
    await turn();
    void coalescer.add('c');
    await turn();
    expect(items()).toEqual([['a']]);
    batches[0]!.end();
    await turn();
    await turn();
    expect(items()).toEqual([['a'], ['b', 'c']]);
  });

  it('go in batches of so many', async () => {
    const { coalescer, items, turn } = stage({ maxUnderway: 2 });
    for (const item of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) void coalescer.add(item);
    await turn();
    await turn();
    await turn();
    expect(items()).toEqual([
      ['a', 'b', 'c'],
      ['d', 'e', 'f'],
    ]);
  });

  it('go in batches of so many bytes, but always one', async () => {
    const { coalescer, items, turn } = stage({ maxUnderway: 9 });
    for (const item of ['12345678901234', '1', '123456789', '12345', '1234']) {
      void coalescer.add(item);
    }
    for (let i = 0; i < 5; i++) await turn();
    expect(items()).toEqual([['12345678901234'], ['1', '123456789'], ['12345', '1234']]);
  });

  it('all fail when their batch does, and later ones are tried all the same', async () => {
    const { coalescer, batches, turn } = stage();
    const failed = Promise.allSettled([coalescer.add('a'), coalescer.add('b')]);
    await turn();
    batches[0]!.end(new Error('away'));
    expect(await failed).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
    const later = coalescer.add('c');
    await turn();
    batches[1]!.end();
    expect(await later).toBe('C');
  });

  it('are counted until they are answered', async () => {
    const { coalescer, batches, turn } = stage();
    const answers = Promise.all(['a', 'b', 'c', 'd'].map((item) => coalescer.add(item)));
    expect(coalescer.size).toBe(4);
    await turn();
    expect(coalescer.size).toBe(4);
    batches[0]!.end();
    await turn();
    expect(coalescer.size).toBe(1);
    await turn();
    batches[1]!.end();
    await answers;
    expect(coalescer.size).toBe(0);
  });
});
