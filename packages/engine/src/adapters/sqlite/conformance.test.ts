import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { AuditEvent } from '../../ports/audit.ts';
import { auditSuite } from '../../testing/audit/audit-suite.ts';
import { inboxSuite } from '../../testing/inbox/inbox-suite.ts';
import { modelSuite } from '../../testing/model/model.ts';
import { scheduleSuite } from '../../testing/schedule/schedule-suite.ts';
import type { StoreSetup } from '../../testing/stage.ts';
import { memory } from '../memory/index.ts';
import { sqlite } from './index.ts';

const { capabilities } = sqlite('never-opened.db');

let folder: string;
let files = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function opened(clock?: Clock) {
  const file = join(folder, `${files++}.db`);
  const instance = async () => {
    const store = sqlite(file, clock ? { clock } : {});
    await store.open();
    return { store, close: () => store.close() };
  };
  const { store, close } = await instance();
  return {
    file,
    store,
    close,
    second: instance,
  };
}

const setup: StoreSetup = {
  capabilities,
  async open() {
    const clock = virtualClock();
    return { ...(await opened(clock)), clock };
  },
};

describe('the SQLite store', () => {
  const model = (clock: Clock) => memory({ clock });
  for (const { name, skip, run: assertCase } of [
    ...scheduleSuite(setup),
    ...inboxSuite(setup),
    ...modelSuite({ ...setup, model, runs: 10 }),
  ]) {
    test.skipIf(skip)(`${name}`, () => assertCase());
  }
});

describe('the audit trail in SQLite', () => {
  const open = async () => {
    const { file, store, close } = await opened();
    const written = async () => {
      const db = new DatabaseSync(file);
      const rows = db.prepare('SELECT event FROM redrive_audit ORDER BY id').all();
      db.close();
      return rows.map(({ event }) => JSON.parse(event as string) as AuditEvent);
    };
    return { sink: store.audit!, written, close };
  };
  for (const { name, run: assertCase } of auditSuite({
    open,
    pruning: true,
    reading: true,
    erasing: true,
  })) {
    test(`${name}`, () => assertCase());
  }
});
