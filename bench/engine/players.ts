import type { BacklogPlayer } from './players/backlog.ts';
import type { Player } from './player.ts';

/** Loaded when wanted: no process has the libraries of others in it. */
const loaders = {
  redrive: async () => {
    const { RedrivePlayer } = await import('./players/redrive.ts');
    const { storeInPostgres } = await import('./players/postgres-store.ts');
    return new RedrivePlayer({ storeAt: storeInPostgres, audit: false });
  },
  'redrive-audit': async () => {
    const { RedrivePlayer } = await import('./players/redrive.ts');
    const { storeInPostgres } = await import('./players/postgres-store.ts');
    return new RedrivePlayer({ storeAt: storeInPostgres, audit: true });
  },
  'redrive-sqlite': async () => {
    const { RedrivePlayer } = await import('./players/redrive.ts');
    const { storeInFile } = await import('./players/sqlite-store.ts');
    return new RedrivePlayer({ storeAt: storeInFile, audit: false });
  },
  'redrive-sqlite-audit': async () => {
    const { RedrivePlayer } = await import('./players/redrive.ts');
    const { storeInFile } = await import('./players/sqlite-store.ts');
    return new RedrivePlayer({ storeAt: storeInFile, audit: true });
  },
  'backlog-postgres': async () => {
    const { BacklogPlayer } = await import('./players/backlog.ts');
    const { storeInPostgres } = await import('./players/postgres-store.ts');
    return new BacklogPlayer({ storeAt: storeInPostgres, audit: false });
  },
  'backlog-sqlite': async () => {
    const { BacklogPlayer } = await import('./players/backlog.ts');
    const { storeInFile } = await import('./players/sqlite-store.ts');
    return new BacklogPlayer({ storeAt: storeInFile, audit: false });
  },
  'pg-boss': async () => new (await import('./players/pg-boss.ts')).PgBossPlayer(),
  'graphile-worker': async () =>
    new (await import('./players/graphile-worker.ts')).GraphileWorkerPlayer(),
  bullmq: async () => new (await import('./players/bullmq.ts')).BullMqPlayer(),
  'raw-postgres': async () => new (await import('./players/raw-postgres.ts')).RawPostgresPlayer(),
  'raw-sqlite': async () => new (await import('./players/raw-sqlite.ts')).RawSqlitePlayer(),
} satisfies Record<string, () => Promise<Player>>;

export type PlayerName = keyof typeof loaders;

/** What a player can be asked for. */
export type Skills<Name extends PlayerName> = Name extends 'backlog-postgres' | 'backlog-sqlite'
  ? BacklogPlayer
  : Required<Player>;

export async function loadPlayer(name: string): Promise<Player> {
  const load = loaders[name as PlayerName];
  if (!load) throw new Error(`there is no player ${name}`);
  return load();
}
