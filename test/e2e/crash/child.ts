/** A process that submits, or works, or both, until it is stopped or killed. Its only argument is its job. */
import { EventEmitter, once } from 'node:events';
import { closeSync, copyFileSync, openSync, rmSync, writeSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createEngine,
  type EngineEvent,
  giveUp,
  type HandlerContext,
  isEngineError,
} from '@redrive/engine';
import {
  type Counts,
  handlerName,
  type Job,
  maxAttempts,
  noCounts,
  type Order,
  type Payload,
  storeAt,
  type Submit,
} from './job.ts';
import { openJournal } from './journal.ts';

const job = JSON.parse(process.argv[2]!) as Job;
const write = openJournal(job.journal);
const counts = { ...noCounts };

let isTelling = false;

/** What was ordered, for whoever waits for it. */
const orders = new EventEmitter().setMaxListeners(0);
const enough = once(orders, 'enough');
const gate = once(orders, 'openGate');
let isEnough = false;

const engine = createEngine<Record<typeof handlerName, Payload>>({
  store: await storeAt(job.place),
  policy: { maxAttempts, base: '20ms', cap: '50ms', jitter: 'full' },
  on: (event) => see(event),
  ...job.engine,
});

process.on('message', (order) => obey(order as Order));
// The test is gone: nobody would ever stop this process.
process.on('disconnect', () => process.exit(1));
process.on('SIGTERM', () => void stop());

if (job.work) {
  const { concurrency } = job.work;
  engine.handle(handlerName, { concurrency }, execute);
  await engine.start();
}
count({ started: true });
// Node does it at the end of a process, which this one may not live to see.
flushCompileCache();
if (job.submit) await submitAll(job.submit);

async function execute(payload: Payload, context: HandlerContext): Promise<unknown> {
  const { id, attempt } = context;
  write({ type: 'began', id, attempt, atMs: Date.now() });
  count({ began: counts.began + 1 });
  const ended = (how: 'worked' | 'threw' | 'aborted') =>
    write({ type: 'ended', id, attempt, atMs: Date.now(), how });
  switch (payload.plan) {
    case 'kills':
      process.kill(process.pid, 'SIGKILL');
      break;
    case 'waits':
      await Promise.race([gate, aborted(context.signal)]);
      if (context.signal.aborted) {
        ended('aborted');
        throw context.signal.reason;
      }
      break;
    case 'hangs':
      await gate;
      break;
    case 'works':
    case 'stumbles':
    case 'fails':
    case 'givesUp':
      await sleep(job.work?.paceMs);
      break;
  }
  if (payload.plan === 'fails' || (payload.plan === 'stumbles' && attempt === 1)) {
    ended('threw');
    throw new Error('This execution was meant to fail.');
  }
  ended('worked');
  return payload.plan === 'givesUp' ? giveUp('as planned') : undefined;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve());
  });
}

function see(event: EngineEvent): void {
  switch (event.type) {
    case 'done':
      count({ done: counts.done + 1 });
      write({ type: 'settled', id: event.id, attempt: event.attempt, to: 'done' });
      break;
    case 'retry': {
      const { id, attempt, delayMs } = event;
      write({ type: 'settled', id, attempt, to: 'retry', delayMs });
      break;
    }
    case 'failed':
    case 'leaseLost':
      write({ type: 'settled', id: event.id, attempt: event.attempt, to: event.type });
      break;
    case 'accepted':
    case 'duplicate':
    case 'started':
    case 'taken':
    case 'cancelled':
    case 'rearmed':
    case 'jobEnded':
    case 'inboxFilling':
    case 'inboxFull':
      break;
  }
}

async function submitAll({ again = [], from, count: limit, ...how }: Submit): Promise<void> {
  const numbers = numbersOf(again, from, limit ?? Infinity);
  const hand = async () => {
    for (const number of numbers) {
      await submitOne(number, how);
      await Promise.race([sleep(how.paceMs), enough]);
    }
  };
  await Promise.all(Array.from({ length: how.atOnce }, hand));
  count({ submitted: true });
}

/** Shared by all hands: each takes the next. */
function* numbersOf(again: number[], from: number, limit: number): Generator<number, void> {
  yield* again;
  for (let i = 0; i < limit; i++) {
    if (isEnough) return;
    yield from + i;
  }
}

async function submitOne(
  number: number,
  { plans, padding }: Pick<Submit, 'plans' | 'padding'>,
): Promise<void> {
  const plan = plans[number % plans.length]!;
  const payload = { number, plan, ...(padding ? { padding: 'x'.repeat(padding) } : {}) };
  // With a key it is the same task however often it is submitted.
  const options = { dedupeKey: String(number) };
  write({ type: 'asked', number });
  for (;;) {
    try {
      const { id, status } = await engine.submit(handlerName, payload, options);
      write({ type: 'accepted', number, id, status });
      return count({ accepted: counts.accepted + 1 });
    } catch (error) {
      if (!isEngineError(error)) throw error;
      write({ type: 'refused', number, code: error.code });
      count({ refused: counts.refused + 1 });
      await once(orders, 'goOn');
    }
  }
}

function obey(order: Order): void {
  if (typeof order === 'object') {
    if ('fillDisk' in order) fillDisk(order.fillDisk);
    else rmSync(order.freeDisk);
    return;
  }
  if (order === 'enough') isEnough = true;
  if (order === 'stop') return void stop();
  orders.emit(order);
}

function fillDisk(file: string): void {
  const fd = openSync(file, 'w');
  for (const bytes of [1024 * 1024, 4096, 1]) {
    const block = Buffer.alloc(bytes);
    try {
      for (;;) writeSync(fd, block);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
  closeSync(fd);
}

async function stop(): Promise<void> {
  if (!counts.started) process.exit(0);
  count({ stopping: counts.stopping + 1 });
  await engine.stop();
  write({ type: 'stopped' });
  if (job.copyTo !== undefined && job.place.kind === 'sqlite') {
    copyFileSync(job.place.file, job.copyTo);
  }
  process.exit(0);
}

/** Many changes of one turn are one message. */
function count(change: Partial<Counts>): void {
  if (!isTelling) setImmediate(tell);
  isTelling = true;
  Object.assign(counts, change);
}

function tell(): void {
  isTelling = false;
  if (process.connected) process.send?.(counts);
}
