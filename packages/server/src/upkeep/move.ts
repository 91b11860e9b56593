/**
 * Takes everything from the file in the data folder into PostgreSQL. It may be killed at any moment and is simply called
 * again: a part and the note of it are one commit, so nothing is copied twice; a sign in the file keeps services from
 * delivering what may be elsewhere already; and the file is renamed only after everything was found in its new place.
 */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { isEngineError } from '@redrive/engine';
import { ServiceError } from '../service-error.ts';
import { hiddenUrl } from '../settings/hide.ts';
import { inUse, MoveSource, type SourceCounts } from './move-source.ts';
import { MoveTarget, type Progress, type Step } from './move-target.ts';

export interface MoveOptions {
  file: string;
  databaseUrl: string;
  /** Called after every part. */
  onProgress?: (progress: MoveProgress) => void;
  /** For the name of what is left of the file. */
  nowMs?: number;
}

export interface MoveProgress {
  step: Step;
  moved: Progress['moved'];
  known: Progress['known'];
  /** What there is in all. */
  of: SourceCounts;
}

export type MoveResult =
  | { type: 'nothing' }
  | {
      type: 'moved';
      moved: Progress['moved'];
      known: Progress['known'];
      /** Bulk jobs that were not over, and were not taken along. */
      openJobs: number;
      renamedTo: string;
    };

export async function move(options: MoveOptions): Promise<MoveResult> {
  const { file, databaseUrl } = options;
  if (!existsSync(file)) return { type: 'nothing' };
  await prepare(file, databaseUrl);
  const source = new MoveSource(file);
  let result: Omit<Extract<MoveResult, { type: 'moved' }>, 'renamedTo'>;
  try {
    const openJobs = source.openJobs();
    const { moved, known } = await moveAll(source, options);
    result = { type: 'moved', moved, known, openJobs };
  } finally {
    source.close();
  }
  const renamedTo = freeName(file, options.nowMs ?? Date.now());
  await rename(file, renamedTo);
  return { ...result, renamedTo };
}

/** Both sides have the tables that this program knows. */
async function prepare(file: string, databaseUrl: string): Promise<void> {
  const { sqlite } = await import('@redrive/engine/sqlite');
  const { migratePostgres } = await import('@redrive/engine/postgres');
  const store = sqlite(file, { busyLimitMs: 1000 });
  try {
    await store.open();
  } catch (error) {
    if (isEngineError(error) && error.code === 'STORE_UNAVAILABLE') throw inUse(file, error);
    throw error;
  }
  await store.close();
  await migratePostgres(databaseUrl);
}

async function moveAll(source: MoveSource, options: MoveOptions): Promise<Progress> {
  const { databaseUrl, onProgress } = options;
  const to = hiddenUrl(databaseUrl);
  const marker = source.marker ?? { id: randomUUID(), to, begun: false };
  // Before anything can be elsewhere: whoever opens the file from now on knows.
  source.mark(marker);
  const target = new MoveTarget(databaseUrl, marker.id);
  await target.open();
  try {
    let progress = await target.progress();
    if (!progress && marker.begun) {
      throw new ServiceError(
        'MOVE_BEGUN',
        `This move was begun into another database (${marker.to}): a part is there. Finish it with that DATABASE_URL.`,
      );
    }
    progress ??= await target.begin(source.last());
    source.mark({ ...marker, begun: true });
    const of = source.counts();
    while (progress.step !== 'done') {
      progress = await next(source, target, progress);
      onProgress?.({ step: progress.step, moved: progress.moved, known: progress.known, of });
    }
    await verify(source, target, progress, of);
    return progress;
  } finally {
    await target.close();
  }
}

/** One part, or the beginning of the next step. */
function next(source: MoveSource, target: MoveTarget, progress: Progress): Promise<Progress> {
  const { step, after } = progress;
  switch (step) {
    case 'tasks': {
      const part = source.tasks(after);
      return part ? target.tasks(part, progress) : target.advance(progress);
    }
    case 'items':
    case 'messages':
    case 'events': {
      const rows = source[step](after);
      return rows.length > 0 ? target[step](rows, progress) : target.advance(progress);
    }
    case 'documents':
    case 'notes':
      return after === 0 ? target[step](source[step](), progress) : target.advance(progress);
    case 'done':
      return Promise.resolve(progress);
  }
}

/** By numbers, and for what is not finished one by one. */
async function verify(
  source: MoveSource,
  target: MoveTarget,
  { moved, known }: Progress,
  of: SourceCounts,
): Promise<void> {
  for (const name of ['tasks', 'attempts', 'items', 'messages', 'events'] as const) {
    if (moved[name] + known[name] !== of[name]) {
      throw incomplete(`${moved[name] + known[name]} of ${of[name]} ${name} were copied`);
    }
  }
  let after = 0;
  for (;;) {
    const rows = source.unfinished(after);
    if (rows.length === 0) return;
    const found = await target.found(rows);
    if (found !== rows.length) {
      throw incomplete(`${rows.length - found} of ${rows.length} tasks are not to be found there`);
    }
    after = rows.at(-1)!['id'] as number;
  }
}

function incomplete(what: string): ServiceError {
  return new ServiceError(
    'MOVE_INCOMPLETE',
    `${what}. The file stays as it is. Look at both, and report this with redrive --version.`,
  );
}

/** `redrive.db.moved-2026-01-31`, or with a number behind it. */
function freeName(file: string, nowMs: number): string {
  const name = `${file}.moved-${new Date(nowMs).toISOString().slice(0, 10)}`;
  for (let n = 1; ; n++) {
    const free = n === 1 ? name : `${name}-${n}`;
    if (!existsSync(free)) return free;
  }
}
