import { statSync } from 'node:fs';
import { createClient } from '@redis/client';
import { startProxy } from '@redrive/services';
import pg from 'pg';
import { Grounds, type Place } from '../engine/grounds.ts';
import { loadPlayer } from '../engine/players.ts';
import type { Case } from '../result.ts';

const COUNTED = 20_000;

/** Bytes of one entry: where it waits, and over the network for its whole way. */
interface Cost {
  stored: number;
  /** A file has none. */
  network?: number;
}

export const cost: Case = {
  name: 'cost',
  about: 'bytes that an entry of 256 bytes takes where it waits: the memory of Redis',
  async run() {
    await using grounds = new Grounds();
    const redis = await grounds.place('redis');
    const redrive = await costOf('delay-redis', redis, memoryOf);
    const bullmq = await costOf('bullmq-delayed', redis, memoryOf);
    const database = await grounds.place('postgres');
    const postgres = await costOf('delay-postgres', database, sizeOf);
    const sqlite = await costInFile('delay-sqlite', await grounds.place('file'));
    const all = { redrive, bullmq, 'redrive on PostgreSQL': postgres };
    const network = Object.entries(all).map(([name, one]) => `${name} ${whole(one.network)}`);
    return {
      metric: 'bytes',
      redrive: redrive.stored,
      peers: { bullmq: bullmq.stored },
      notes: [
        `in the other stores, with indexes: PostgreSQL ${whole(postgres.stored)}, SQLite ${whole(sqlite.stored)}`,
        `network bytes of an entry to and from the server, stored and done: ${network.join(', ')}`,
      ],
    };
  },
};

async function costOf(
  name: string,
  { address }: Place,
  storedAt: (url: string) => Promise<number>,
): Promise<Cost> {
  await using proxy = await startProxy(address);
  // Once for nothing: scripts and tables are there, and buffers have their size.
  const first = await loadPlayer(name);
  await first.open(proxy.url);
  await first.schedule(1000);
  await first.execute(1000);
  await first.close();
  const player = await loadPlayer(name);
  await player.open(proxy.url);
  const [bytes, before] = [proxy.bytes, await storedAt(address)];
  await player.schedule(COUNTED);
  const stored = (await storedAt(address)) - before;
  await player.execute(COUNTED);
  const network = proxy.bytes - bytes;
  await player.close();
  return { stored: stored / COUNTED, network: network / COUNTED };
}

/** After a close, which leaves no journal. */
async function costInFile(name: string, { address }: Place): Promise<Cost> {
  const player = await loadPlayer(name);
  await player.open(address);
  await player.schedule(COUNTED);
  await player.close();
  return { stored: statSync(address).size / COUNTED };
}

async function memoryOf(url: string): Promise<number> {
  const client = await createClient({ url }).connect();
  const text = await client.info('memory');
  await client.close();
  return Number(/^used_memory_dataset:(\d+)/m.exec(text)?.[1]);
}

async function sizeOf(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ bytes: string }>(
    'SELECT pg_database_size(current_database()) AS bytes',
  );
  await client.end();
  return Number(rows[0]!.bytes);
}

function whole(bytes: number | undefined): string {
  return bytes === undefined ? 'unknown' : bytes.toFixed(0);
}
