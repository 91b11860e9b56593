import type { Player } from './player.ts';
import type { BacklogPlayer } from './players/backlog.ts';
import type { OpenedQueue } from './players/delay-queue.ts';
import type { InboxPlayer } from './players/inbox.ts';
import type { AuditTrail, RedriveOptions } from './players/redrive.ts';
import type { ReplayPlayer } from './players/replay.ts';

/** Loaded when wanted: no process has the libraries of others in it. */
const loaders = {
  redrive: () => redrive('postgres', 'off'),
  'redrive-trail': () => redrive('postgres', 'on'),
  'redrive-audit': () => redrive('postgres', 'successes'),
  'redrive-sqlite': () => redrive('file', 'off'),
  'redrive-sqlite-trail': () => redrive('file', 'on'),
  'redrive-sqlite-audit': () => redrive('file', 'successes'),
  'retrying-postgres': () => retrying('postgres', 'off'),
  'retrying-postgres-trail': () => retrying('postgres', 'on'),
  'retrying-sqlite': () => retrying('file', 'off'),
  'retrying-sqlite-trail': () => retrying('file', 'on'),
  'backlog-postgres': () => backlog('postgres'),
  'backlog-sqlite': () => backlog('file'),
  'ordered-postgres': () => ordered('postgres'),
  'ordered-sqlite': () => ordered('file'),
  'replay-postgres': () => replay('postgres'),
  'replay-sqlite': () => replay('file'),
  'inbox-postgres': () => inbox('postgres'),
  'inbox-sqlite': () => inbox('file'),
  'pg-boss': async () => new (await import('./players/pg-boss.ts')).PgBossPlayer(),
  'graphile-worker': async () =>
    new (await import('./players/graphile-worker.ts')).GraphileWorkerPlayer(),
  bullmq: async () => new (await import('./players/bullmq.ts')).BullMqPlayer(),
  'bullmq-delayed': async () => new (await import('./players/bullmq.ts')).BullMqPlayer(1),
  'delay-redis': async () => {
    const { queueInRedis } = await import('./players/delay-queues.ts');
    return delayQueue(queueInRedis);
  },
  'delay-postgres': () => delayQueueIn('postgres'),
  'delay-sqlite': () => delayQueueIn('file'),
  'raw-postgres': async () => new (await import('./players/raw-postgres.ts')).RawPostgresPlayer(),
  'raw-sqlite': async () => new (await import('./players/raw-sqlite.ts')).RawSqlitePlayer(),
} satisfies Record<string, () => Promise<Player>>;

export type PlayerName = keyof typeof loaders;

/** Those who can do more than every player. */
interface Special {
  'backlog-postgres': BacklogPlayer;
  'backlog-sqlite': BacklogPlayer;
  'replay-postgres': ReplayPlayer;
  'replay-sqlite': ReplayPlayer;
  'inbox-postgres': InboxPlayer;
  'inbox-sqlite': InboxPlayer;
}

/** What a player can be asked for. */
export type Skills<Name extends PlayerName> = Name extends keyof Special
  ? Special[Name]
  : Required<Player>;

export async function loadPlayer(name: string): Promise<Player> {
  const load = loaders[name as PlayerName];
  if (!load) throw new Error(`there is no player ${name}`);
  return load();
}

type StoreGround = 'postgres' | 'file';

async function redrive(ground: StoreGround, audit: AuditTrail) {
  const { RedrivePlayer } = await import('./players/redrive.ts');
  return new RedrivePlayer(await optionsAt(ground, audit));
}

async function retrying(ground: StoreGround, audit: AuditTrail) {
  const { RetryingPlayer } = await import('./players/retrying.ts');
  return new RetryingPlayer(await optionsAt(ground, audit));
}

async function backlog(ground: StoreGround) {
  const { BacklogPlayer } = await import('./players/backlog.ts');
  return new BacklogPlayer(await optionsAt(ground));
}

async function ordered(ground: StoreGround) {
  const { OrderedPlayer } = await import('./players/ordered.ts');
  return new OrderedPlayer(await optionsAt(ground));
}

async function replay(ground: StoreGround) {
  const { ReplayPlayer } = await import('./players/replay.ts');
  return new ReplayPlayer(await optionsAt(ground));
}

async function inbox(ground: StoreGround) {
  const { InboxPlayer } = await import('./players/inbox.ts');
  return new InboxPlayer(await optionsAt(ground));
}

async function delayQueue(openAt: (place: string) => Promise<OpenedQueue>) {
  const { DelayQueuePlayer } = await import('./players/delay-queue.ts');
  return new DelayQueuePlayer(openAt);
}

async function delayQueueIn(ground: StoreGround) {
  const { queueOn } = await import('./players/delay-queues.ts');
  const { storeAt } = await optionsAt(ground);
  return delayQueue(async (place) => queueOn(storeAt(place)));
}

async function optionsAt(ground: StoreGround, audit: AuditTrail = 'off'): Promise<RedriveOptions> {
  const storeAt =
    ground === 'postgres'
      ? (await import('./players/postgres-store.ts')).storeInPostgres
      : (await import('./players/sqlite-store.ts')).storeInFile;
  return { storeAt, audit };
}
