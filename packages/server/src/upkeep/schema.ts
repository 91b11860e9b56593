/** The schema of the store, for whoever looks before and after an upgrade. */
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { databaseFile } from '../settings/data-dir.ts';
import type { Settings } from '../settings/settings.ts';
import { idempotencyOf } from './idempotency-keys.ts';

/** The version that is there; undefined: there are no tables. */
export async function schemaOf(settings: Settings): Promise<number | undefined> {
  return settings.databaseUrl === undefined
    ? schemaOfFile(databaseFile(settings))
    : schemaOfDatabase(settings.databaseUrl);
}

export async function migrateStore(settings: Settings): Promise<void> {
  const { databaseUrl, dataDir } = settings;
  if (databaseUrl !== undefined) {
    const { migratePostgres } = await import('@redrive/engine/postgres');
    await migratePostgres(databaseUrl);
  } else {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    const { sqlite } = await import('@redrive/engine/sqlite');
    const store = sqlite(databaseFile(settings));
    await store.open();
    await store.close();
  }
  // Its table is made at the first use.
  const keys = await idempotencyOf(settings);
  try {
    await keys.prune(1);
  } finally {
    await keys.close?.();
  }
}

async function schemaOfFile(file: string): Promise<number | undefined> {
  if (!existsSync(file)) return undefined;
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(file);
  try {
    const known = db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'redrive_schema'`).get();
    const row = known && db.prepare('SELECT version FROM redrive_schema').get();
    return row && Number(row['version']);
  } finally {
    db.close();
  }
}

async function schemaOfDatabase(url: string): Promise<number | undefined> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const known = await client.query<{ name: string | null }>(
      `SELECT to_regclass('public.redrive_schema') AS name`,
    );
    if (known.rows[0]?.name == null) return undefined;
    const { rows } = await client.query<{ version: number }>(
      'SELECT version FROM public.redrive_schema',
    );
    return rows[0]?.version;
  } finally {
    await client.end();
  }
}
