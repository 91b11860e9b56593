/** Runs many seeds in several processes, and adds up what they tell. */
import { fork } from 'node:child_process';
import type { Progress } from './worker.ts';

export interface SeedRun {
  start: number;
  seeds: number;
  processes: number;
  worker: URL;
  print: (line: string) => void;
  /** Told after every message of a worker. */
  counted?: (seeds: number) => void;
  /** A line of progress each time that so many more seeds have run. */
  everySeeds?: number;
}

interface WorkerEnd {
  first: number;
  /** How many seeds it was to run, and how many it has told of. */
  asked: number;
  ran: number;
  /** `code 1`, `signal SIGKILL`. */
  end: string;
  isGood: boolean;
}

interface Sum extends Omit<Progress, 'rssBytes' | 'heapBytes'> {
  rssBytes: (number | undefined)[];
}

/** True: every seed has run, and none failed. */
export async function runSeeds(run: SeedRun): Promise<boolean> {
  const { seeds, processes, print } = run;
  const sum: Sum = { seeds: 0, starts: 0, crashes: 0, failed: [], rssBytes: [] };
  const startedAt = performance.now();
  const eachMs = () =>
    (((performance.now() - startedAt) * processes) / Math.max(1, sum.seeds)).toFixed(1);
  const progress = () => {
    // One of them may not have told anything yet.
    const memory = Array.from(
      sum.rssBytes,
      (bytes: number | undefined = 0) => `${Math.round(bytes / 1e6)} MB`,
    );
    print(
      `${sum.seeds} of ${seeds} seeds, ${sum.failed.length} failed, ${eachMs()} ms a seed, memory ${memory.join(', ')}`,
    );
  };
  const ends = await Promise.all(
    Array.from({ length: processes }, (_, i) => runWorker(run, i, sum, progress)),
  );
  const missing = seeds - sum.seeds;
  const broken = ends.filter(({ isGood, ran, asked }) => !isGood || ran !== asked);
  for (const { first, asked, ran, end } of broken) {
    print(
      `\nThe worker of seeds ${first}, ${first + processes} and so on ended with ${end} after ${ran} of its ${asked} seeds. ` +
        `It may have ended in any seed from ${first + ran * processes} on.`,
    );
  }
  const figures = `${sum.starts} deliveries, ${sum.crashes} crashes, ${eachMs()} ms a seed`;
  print(`\n${sum.seeds} of ${seeds} seeds ran, ${sum.failed.length} failed; ${figures}`);
  if (missing !== 0) print(`FAILED: ${missing} seeds are missing. Nothing is known of them.`);
  return missing === 0 && broken.length === 0 && sum.failed.length === 0;
}

function runWorker(run: SeedRun, i: number, sum: Sum, progress: () => void): Promise<WorkerEnd> {
  const { start, seeds, processes, worker, print, counted, everySeeds = Infinity } = run;
  const first = start + i;
  const asked = Math.max(0, Math.ceil((seeds - i) / processes));
  let ran = 0;
  const child = fork(worker, [first, start + seeds, processes].map(String));
  child.on('message', (told: Progress) => {
    ran += told.seeds;
    const before = sum.seeds;
    sum.seeds += told.seeds;
    sum.starts += told.starts;
    sum.crashes += told.crashes;
    sum.rssBytes[i] = told.rssBytes;
    for (const one of told.failed) {
      print(`\nseed ${one.seed} failed:\n  ${one.violations.join('\n  ')}`);
      print(`  again: npm run sim -- --replay ${one.seed}`);
      sum.failed.push(one);
    }
    counted?.(sum.seeds);
    if (Math.floor(before / everySeeds) < Math.floor(sum.seeds / everySeeds)) progress();
  });
  const exited = new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    child.on('exit', (...how) => resolve(how));
  });
  // Its last messages may come after its end.
  const hungUp = new Promise<void>((resolve) => {
    child.on('disconnect', resolve);
  });
  return Promise.all([exited, hungUp]).then(([[code, signal]]) => {
    const end = signal ? `signal ${signal}` : `code ${code}`;
    return { first, asked, ran, end, isGood: code === 0 };
  });
}
