import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { type DelayedEntry, MAX_DELAY_MS, MAX_PAYLOAD_BYTES } from '../../ports/delay-queue.ts';
import {
  type DelayCases,
  type DelayStage,
  entry,
  expectOnly,
  type Handover,
  idsOf,
  listen,
  numbered,
  textOf,
} from './delay-queue-stage.ts';
import { skewedClock } from './skewed-clock.ts';

export const scheduleCases: DelayCases = {
  'hands over each entry with its id, payload and key': async (stage) => {
    await stage.queue.schedule([
      { ...entry('with', 0, 'one'), key: 'its key' },
      entry('without', 0, 'two'),
    ]);
    const { got } = await listen(stage, stage.queue);
    await stage.until('both entries', () => got.length === 2);
    const facts = got.map((one) => `${one.entry.id}, ${textOf(one)}, ${one.entry.key}`);
    deepEqual(facts.toSorted(), ['with, one, its key', 'without, two, without']);
    ok(got.every((one) => one.entry.redeliveries === 0 && one.entry.lateMs >= 0));
  },

  'never hands over early, whatever the delay': async (stage) => {
    const { got } = await listen(stage, stage.queue);
    await expectInTime(stage, got);
  },

  'never hands over early where the local clock is ahead and fast': {
    needs: 'skewed',
    run: async (stage) => {
      const queue = await stage.skewed(skewedClock({ aheadMs: 3_600_000, rate: 3 }));
      const { got } = await listen(stage, queue);
      await expectInTime({ ...stage, queue }, got);
    },
  },

  'hands over though the local clock is behind and slow': {
    needs: 'skewed',
    run: async (stage) => {
      const queue = await stage.skewed(skewedClock({ aheadMs: -3_600_000, rate: 0.5 }));
      const { got } = await listen(stage, queue);
      await expectInTime({ ...stage, queue }, got);
    },
  },

  'keeps the longest delay': async (stage) => {
    const { got } = await listen(stage, stage.queue);
    await stage.queue.schedule([entry('far', MAX_DELAY_MS), entry('near', 100)]);
    await expectOnly(stage, got, ['near']);
  },

  'says how late an entry is': async (stage) => {
    await stage.queue.schedule([entry('late', 20)]);
    await stage.pass(200);
    const { got } = await listen(stage, stage.queue);
    await stage.until('the entry', () => got.length === 1);
    const { lateMs } = got[0]!.entry;
    ok(lateMs >= 180 - stage.slackMs, `late by ${lateMs} ms after 180 ms`);
  },

  'has what it acknowledged, when its process is killed at once': {
    needs: 'kill',
    run: async (stage) => {
      const first = await stage.another();
      const acknowledged: string[] = [];
      await Promise.all(
        Array.from({ length: 20 }, async (_, i) => {
          await first.schedule(numbered(10, 30, `${i}:`));
          acknowledged.push(...numbered(10, 30, `${i}:`).map(({ id }) => id));
        }),
      );
      await stage.kill(first);
      const { got } = await listen(stage, stage.queue);
      await stage.until('all that was acknowledged', () => {
        const ids = new Set(idsOf(got));
        return acknowledged.every((id) => ids.has(id));
      });
    },
  },

  'has on the server what it acknowledged, and nothing after the answers': {
    needs: 'held',
    run: async (stage) => {
      const ids = numbered(50).map(({ id }) => id);
      await stage.queue.schedule(numbered(50, 3_600_000));
      deepEqual((await stage.held()).toSorted(), ids.toSorted());
      const { got } = await listen(stage, stage.queue);
      await stage.queue.schedule(numbered(50, 0, 'now'));
      await stage.until('the entries', () => got.length === 50);
      await stage.until('the answers', async () => (await stage.held()).length === 50);
      deepEqual((await stage.held()).toSorted(), ids.toSorted());
    },
  },

  'outlives its process': {
    needs: 'durable',
    run: async (stage) => {
      const first = await stage.another();
      await first.schedule(numbered(30, 50));
      await first.close();
      const { got } = await listen(stage, stage.queue);
      await expectOnly(stage, got, idsOfNumbered(30));
    },
  },

  'takes an empty list': async ({ queue }) => {
    await queue.schedule([]);
  },

  'takes ten thousand entries in one call': async (stage) => {
    await stage.queue.schedule(numbered(10_000));
    const { got } = await listen(stage, stage.queue, undefined, { maxBatch: 1000 });
    await expectOnly(stage, got, idsOfNumbered(10_000));
  },

  'takes many calls at once': async (stage) => {
    const { got } = await listen(stage, stage.queue);
    await Promise.all(numbered(300).map((one) => stage.queue.schedule([one])));
    await expectOnly(stage, got, idsOfNumbered(300));
  },

  'keeps odd ids and keys apart': async (stage) => {
    const entries = oddIds.map((id, i): DelayedEntry => ({ ...entry(id, 0, `${i}`), key: id }));
    await stage.queue.schedule(entries);
    const { got } = await listen(stage, stage.queue);
    await stage.until('all of them', () => got.length >= oddIds.length);
    const byText = got.toSorted((a, b) => Number(textOf(a)) - Number(textOf(b)));
    deepEqual(
      byText.map((one) => [one.entry.id, one.entry.key]),
      oddIds.map((id) => [id, id]),
    );
  },

  'keeps payloads byte by byte, the empty and the largest included': async (stage) => {
    const bytes = Uint8Array.from(
      { length: MAX_PAYLOAD_BYTES },
      (_, i) => (i * 7 + (i >> 8)) % 256,
    );
    const payloads = [new Uint8Array(), Uint8Array.of(0), bytes, bytes.subarray(1000, 1256)];
    await stage.queue.schedule(
      payloads.map((payload, i) => ({ id: `p${i}`, delayMs: 0, payload })),
    );
    const kept = bytes.slice();
    bytes.fill(0);
    const { got } = await listen(stage, stage.queue);
    await stage.until('all of them', () => got.length === 4);
    const byId = new Map(got.map((one) => [one.entry.id, Buffer.from(one.entry.payload)]));
    equal(byId.get('p0')!.length, 0);
    deepEqual([...byId.get('p1')!], [0]);
    ok(byId.get('p2')!.equals(kept), 'the largest payload is another now');
    ok(byId.get('p3')!.equals(kept.subarray(1000, 1256)), 'a part of a buffer is another now');
  },

  'refuses entries with faults, names all of them, and takes none of the call': async (stage) => {
    const bad = [
      entry('good'),
      entry(''),
      entry('x'.repeat(256)),
      entry('nul\0'),
      entry('half \uD800'),
      entry('negative', -1),
      entry('half a ms', 0.5),
      entry('too far', MAX_DELAY_MS + 1),
      entry('not a number', NaN),
      { ...entry('large'), payload: new Uint8Array(MAX_PAYLOAD_BYTES + 1) },
      { ...entry('text'), payload: 'text' as never },
      { ...entry('key'), key: '' },
      { ...entry('', -1), payload: null as never },
    ];
    await rejects(stage.queue.schedule(bad), (error: { code?: string; faults?: unknown[] }) => {
      equal(error.code, 'INVALID_ENTRY');
      equal(error.faults?.length, 14);
      return true;
    });
    const { got } = await listen(stage, stage.queue);
    await stage.queue.schedule([entry('after', 20)]);
    await expectOnly(stage, got, ['after']);
  },
};

const oddIds = [
  'a',
  'A',
  ' a',
  'a ',
  'a\n',
  '{a}',
  '}{',
  'a:b',
  'a/b\\c',
  `'"\`;--`,
  '%s %d',
  '*?[a-z]',
  '__proto__',
  'constructor',
  '0',
  '-1',
  '\u00e9',
  'e\u0301',
  '\u{1F680}\u{1F468}\u200D\u{1F469}',
  '\u202Eright to left',
  '\uFFFF',
  '€'.repeat(255),
  'x'.repeat(255),
];

const DELAYS_MS = [0, 1, 3, 10, 10, 30, 100, 101, 250, 600, 1200];

async function expectInTime(
  stage: Pick<DelayStage, 'queue' | 'nowMs' | 'until' | 'slackMs'>,
  got: readonly Handover[],
): Promise<void> {
  const calledAtMs = new Map<string, number>();
  const delays = new Map<string, number>();
  for (let round = 0; round < 3; round++) {
    const entries = DELAYS_MS.map((delayMs, i) => entry(`${round}:${i}`, delayMs));
    for (const { id, delayMs } of entries) {
      calledAtMs.set(id, stage.nowMs());
      delays.set(id, delayMs);
    }
    await stage.queue.schedule(entries);
  }
  await stage.until('all entries', () => got.length >= delays.size);
  for (const { entry: one, atMs } of got) {
    const waitedMs = atMs - calledAtMs.get(one.id)!;
    const delayMs = delays.get(one.id)!;
    ok(waitedMs >= delayMs - stage.slackMs, `${waitedMs} ms instead of ${delayMs}: early`);
    ok(one.lateMs >= 0, `late by ${one.lateMs} ms`);
  }
  equal(new Set(idsOf(got)).size, delays.size);
}

function idsOfNumbered(count: number): string[] {
  return numbered(count).map(({ id }) => id);
}
