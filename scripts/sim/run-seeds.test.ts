import { fork } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { runSeeds } from './run-seeds.ts';
import type { Progress } from './worker.ts';

const real = new URL('./worker.ts', import.meta.url);
const folder = mkdtempSync(join(tmpdir(), 'sim-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A worker whose every seed is `body`; it tells of each seed by itself. */
function workerOf(name: string, body: string): URL {
  const path = join(folder, `${name}.mjs`);
  writeFileSync(
    path,
    `const [first, end, step] = process.argv.slice(2).map(Number);
    const tell = (failed = []) => new Promise((resolve) => {
      process.send({ seeds: 1, starts: 2, crashes: 3, failed, rssBytes: 5e6 }, resolve);
    });
    for (let seed = first; seed < end; seed += step) { ${body} }
    process.disconnect();`,
  );
  return pathToFileURL(path);
}

async function run(worker: URL, seeds: number, everySeeds?: number) {
  const lines: string[] = [];
  const print = (line: string) => void lines.push(line);
  const about = { start: 1, seeds, processes: 2, worker, print };
  const isGood = await runSeeds({ ...about, ...(everySeeds === undefined ? {} : { everySeeds }) });
  return { isGood, text: lines.join('\n') };
}

describe('a run of many seeds', () => {
  it('says how many of how many ran', async () => {
    const { isGood, text } = await run(workerOf('good', 'await tell();'), 7);
    expect(text).toMatch(/^\n7 of 7 seeds ran, 0 failed; 14 deliveries, 21 crashes, [\d.]+ ms a/);
    expect(isGood).toBe(true);
  });

  it('fails with the seed that failed', async () => {
    const body = `await tell(seed === 4 ? [{ seed, violations: ['it broke'] }] : []);`;
    const { isGood, text } = await run(workerOf('failing', body), 6);
    expect(text).toContain('seed 4 failed:\n  it broke\n  again: npm run sim -- --replay 4');
    expect(text).toContain('6 of 6 seeds ran, 1 failed;');
    expect(isGood).toBe(false);
  });

  it.each([
    ['is killed', `process.kill(process.pid, 'SIGKILL'); await new Promise(() => {});`, 'SIGKILL'],
    ['runs out of memory', 'process.exit(134);', 'code 134'],
    ['ends too early', 'process.disconnect(); process.exit(0);', 'code 0'],
  ])('fails, and says which seeds are missing, where a worker %s', async (name, end, said) => {
    const body = `if (seed === 6) { ${end} } await tell();`;
    const { isGood, text } = await run(workerOf(name, body), 20);
    expect(text).toContain('The worker of seeds 2, 4 and so on ended with');
    expect(text).toContain(`${said} after 2 of its 10 seeds.`);
    expect(text).toContain('It may have ended in any seed from 6 on.');
    expect(text).toContain('12 of 20 seeds ran, 0 failed;');
    expect(text).toMatch(/FAILED: 8 seeds are missing\. Nothing is known of them\.$/);
    expect(isGood).toBe(false);
  });

  it('fails where all seeds ran and a worker ended badly all the same', async () => {
    const body = `await tell(); if (seed === 3) process.exitCode = 7;`;
    const { isGood, text } = await run(workerOf('bad-end', body), 4);
    expect(text).toContain('ended with code 7 after 2 of its 2 seeds');
    expect(isGood).toBe(false);
  });

  it('says now and then how far it is and what memory each worker has', async () => {
    const { text } = await run(workerOf('long', 'await tell();'), 50, 20);
    const lines = text.split('\n').filter((line) => line.includes('memory'));
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(
      /^20 of 50 seeds, 0 failed, [\d.]+ ms a seed, memory \d MB(, \d MB)?$/,
    );
  });
});

describe('a worker', () => {
  it('keeps nothing of the worlds that are over', async () => {
    const heaps: number[] = [];
    const child = fork(real, ['1', '201', '1'], { execArgv: ['--expose-gc'] });
    child.on('message', ({ seeds, heapBytes = NaN }: Progress) => {
      if (seeds > 0) heaps.push(heapBytes);
    });
    const exited = new Promise((resolve) => {
      child.on('exit', resolve);
    });
    const hungUp = new Promise<void>((resolve) => {
      child.on('disconnect', resolve);
    });
    const [code] = await Promise.all([exited, hungUp]);
    expect(code).toBe(0);
    expect(heaps).toHaveLength(4);
    // A world that stays, with its engines, takes 300 kB.
    expect(heaps.at(-1)! - heaps[0]!).toBeLessThan(150 * 50_000);
  }, 120_000);
});
