/** A data folder in which there is some of everything, and a look at a store that two stores can be compared by. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createEngine,
  type Delivery,
  giveUp,
  type InboxItem,
  type Store,
  type Task,
} from '@redrive/engine';
import { sqlite } from '@redrive/engine/sqlite';

const HOUR_MS = 3_600_000;
/** More than one part, so that a move has somewhere to be interrupted. */
export const WAITING = 1200;

export class DataFolder implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'redrive-move-'));
  readonly file = join(this.folder, 'redrive.db');

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Tasks in every state, executions, items open and closed, lines, lanes, policies, notes, messages, a trail. */
export async function fill(file: string, waiting = WAITING): Promise<void> {
  const store = sqlite(file);
  await store.open();
  await store.writeState('seed', 42, 0);
  const queue: Delivery = { kind: 'queue', deliver: () => Promise.resolve({ type: 'taken' }) };
  const engine = createEngine({
    store,
    deliveries: [queue],
    audit: true,
    lane: { failures: 1000 },
    policy: { maxAttempts: 3, base: 1, cap: 2, jitter: 'none' },
    review: ({ messageId }) => ({
      destination: { kind: 'review', address: 'manual-review.pending' },
      payload: Buffer.from(messageId),
      headers: { 'x-review-reason': 'test' },
    }),
  })
    .handle('works', () => undefined)
    .handle('breaks', () => {
      throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    })
    .handle('refuses', (n: number) => giveUp(`number ${n} \u0000 is not wanted`));
  const later = Date.now() + HOUR_MS;
  await engine.submitMany([
    ...many(30, (n) => ({ to: 'works' as const, payload: n })),
    ...many(20, (n) => ({ to: 'breaks' as const, payload: n })),
    ...many(20, (n) => ({ to: 'refuses' as const, payload: n })),
    ...many(20, (n) => ({ to: { kind: 'queue', address: 'orders' }, payload: { n } })),
  ]);
  // The first of this line lies in the inbox, and the others wait behind it.
  await engine.submitMany(
    many(5, (n) => ({ to: 'refuses' as const, payload: 100 + n, orderingKey: 'stuck' })),
  );
  await engine.submitMany(
    many(5, (n) => ({ to: 'breaks' as const, payload: n, orderingKey: 'long', dueAt: later })),
  );
  await engine.submitMany(
    many(waiting, (n) => ({
      to: `https://api.example.com/${n % 7}/${'long'.repeat(n % 100)}`,
      payload: Buffer.alloc(n % 50 === 0 ? 60_000 : 20, n % 256),
      dueAt: later + n,
      ...(n % 3 === 0 ? { expiresAt: later + HOUR_MS } : {}),
      context: { headers: { 'x-n': `${n}`, 'x-text': 'ü\u2028' }, method: 'PUT' },
      ...(n % 100 === 0 ? { policy: { maxAttempts: 5 + n / 100 } } : {}),
    })),
  );
  await engine.start();
  await until(async () => {
    const { open } = await engine.census();
    const items = Object.values(open).reduce((sum, count) => sum + count, 0);
    const retried = await engine.list({ status: 'retried', limit: 100 });
    const done = await engine.list({ status: 'done', limit: 100 });
    return items === 41 && retried.length === 20 && done.length === 30;
  });
  const { items } = await engine.inbox.items({ state: 'open', limit: 100 });
  const [resolved, discarded, edited, replayed] = items.filter(
    ({ orderingKey }) => orderingKey === undefined,
  ) as [InboxItem, InboxItem, InboxItem, InboxItem];
  await engine.inbox.resolve(resolved.id, { by: 'ada' });
  await engine.inbox.discard(discarded.id, { by: 'bob' });
  await engine.inbox.edit(edited.id, { payload: 'better', headers: { a: 'b' }, by: 'ada' });
  await engine.inbox.annotate(edited.fingerprint, { note: 'We know.', owner: 'ada' });
  await engine.pause('https://api.example.com', 'ada');
  await engine.stop();

  const plain = sqlite(file);
  await plain.open();
  await plain.act([replayed.id], { type: 'replay', by: 'ada' });
  for (const n of [1, 2, 2]) {
    const messageId = `00000000-0000-4000-8000-00000000000${n}`;
    const failure = { class: 'technical', code: 'UNREADABLE', message: 'What is that?' } as const;
    const item = { reason: 'UNREADABLE', failure, fingerprint: 'f00', messageId } as const;
    await plain.append([{ ...item, source: 'retry.scheduled', payload: Buffer.from([n, 0, 255]) }]);
  }
  await plain.close();
}

/** Everything that can be asked of a store, without the numbers that are its own. */
export async function lookAt(store: Store): Promise<unknown> {
  const tasks = await all<Task>((before) => store.list({ before, limit: 500 }));
  const byId = new Map(tasks.map(({ id, messageId }) => [id, messageId]));
  const items: InboxItem[] = [];
  for (let before: number | undefined = Number.MAX_SAFE_INTEGER; before !== undefined;) {
    const page = await store.items({ before, limit: 500 });
    items.push(...page.items);
    before = page.next;
  }
  const attempts: unknown[] = [];
  for (const { id, messageId, attempt } of tasks) {
    if (attempt > 0) attempts.push([messageId, await store.attempts(id)]);
  }
  const { documents } = await store.readState('');
  return {
    tasks: tasks.map(({ payload, failure, ...task }) => ({
      ...task,
      id: undefined,
      failure: clean(failure),
      payload: Buffer.from(payload).toString('base64'),
    })),
    items: items.map(({ taskId, payload, failure, edit, ...item }) => ({
      ...item,
      id: undefined,
      failure: clean(failure),
      edit: edit && { ...edit, payload: edit.payload && Buffer.from(edit.payload).toString() },
      payload: Buffer.from(payload).toString('base64'),
      task: taskId === undefined ? undefined : (byId.get(taskId) ?? 'gone'),
    })),
    attempts: clean(attempts),
    groups: clean(await store.groups({ all: true, limit: 1000 })),
    documents: documents
      .filter(({ key }) => !key.startsWith('mov') && key !== 'jobs')
      .map(({ key, value }) => [key, value]),
    census: { ...(await store.census()), oldestDueInMs: 0 },
    messages: (await store.takeOutbox(1000, 1)).map(({ payload, ...message }) => ({
      ...message,
      id: undefined,
      payload: Buffer.from(payload).toString(),
    })),
  };
}

/** PostgreSQL has no zero in a text. */
function clean(value: unknown): unknown {
  if (value === undefined) return undefined;
  return JSON.parse(JSON.stringify(value).replaceAll('\\u0000', '\uFFFD'));
}

async function all<T extends { id: number }>(page: (before: number) => Promise<T[]>): Promise<T[]> {
  const found: T[] = [];
  for (let before = Number.MAX_SAFE_INTEGER; ;) {
    const rows = await page(before);
    if (rows.length === 0) return found;
    found.push(...rows);
    before = rows.at(-1)!.id;
  }
}

function many<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n));
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const startMs = performance.now();
  while (!(await isSo())) {
    if (performance.now() - startMs > 20_000) throw new Error('The scene does not come about.');
  }
}
