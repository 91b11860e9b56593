import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqliteIdempotency } from '@redrive/engine/sqlite';
import { race } from '../race.ts';
import type { Case } from '../result.ts';
import { crowd, effect, judged, redriveOn } from './crowd.ts';

export const sqliteCase: Case = {
  name: 'sqlite',
  about: 'the same in a file, every answer on the disk',
  async run(effort) {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-'));
    const store = sqliteIdempotency(join(folder, 'redrive.db'));
    const db = new DatabaseSync(join(folder, 'bare.db'));
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    db.exec('CREATE TABLE keys (key TEXT PRIMARY KEY, result TEXT)');
    const claim = db.prepare('INSERT INTO keys (key) VALUES (?) ON CONFLICT DO NOTHING');
    const record = db.prepare('UPDATE keys SET result = ? WHERE key = ?');
    try {
      const result = await race(
        [
          crowd('redrive', redriveOn(store), { waits: true }),
          crowd(
            'bare',
            async (key) => {
              claim.run(key);
              const done = await effect();
              record.run(JSON.stringify(done), key);
              return done;
            },
            { waits: true },
          ),
        ],
        effort,
      );
      return {
        ...judged(result, 0.6),
        notes: [
          'bare: INSERT and UPDATE, each its own commit; Redrive commits those of one turn together',
        ],
      };
    } finally {
      await store.close?.();
      db.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
