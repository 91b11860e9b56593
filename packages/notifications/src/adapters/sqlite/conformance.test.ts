import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { repositorySuite } from '../../testing/index.ts';
import { sqliteNotifications } from './index.ts';

let folder: string;
let files = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-notifications-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the repository in SQLite', () => {
  const cases = repositorySuite({
    atomic: true,
    complete: true,
    durable: true,
    damaging: true,
    async open(onUnreadable) {
      const file = join(folder, `${files++}.db`);
      const another = () => sqliteNotifications(file, { onUnreadable });
      const repository = another();
      await repository.open();
      return {
        repository,
        another,
        close: () => repository.close(),
        async damage(id, how) {
          const db = new DatabaseSync(file);
          const change =
            how === 'without createdAtMs'
              ? `json_remove(document, '$.createdAtMs')`
              : `json_set(document, '$.deliveries', 'none')`;
          db.prepare(`UPDATE notifications SET document = ${change} WHERE id = ?`).run(id);
          db.close();
        },
      };
    },
  });
  for (const { name, run: assertCase } of cases) test(`${name}`, () => assertCase());
});
