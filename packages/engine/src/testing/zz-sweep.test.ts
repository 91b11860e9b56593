import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { virtualClock } from 'redrive/testing';
import { test } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { sqlite } from '../adapters/sqlite/index.ts';
import { modelSuite } from './model.ts';
const folder = mkdtempSync(join(tmpdir(), 'sweep-'));
let n = 0;
for (const { name, run } of modelSuite({
  capabilities: sqlite('x.db').capabilities,
  async open() {
    const clock = virtualClock();
    const store = sqlite(join(folder, `${n++}.db`), { clock });
    await store.open();
    return { store, clock, close: () => store.close() };
  },
  model: (clock) => memory({ clock }), seed: 1000, runs: 60, steps: 200,
})) test(name, () => run());
