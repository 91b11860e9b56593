import type { Suite } from '../result.ts';
import { auditOn } from './audit-on.ts';
import { groups, list } from './look.ts';
import { ordered } from './ordered.ts';
import { fresh } from './fresh.ts';
import { replay } from './replay.ts';

export const suite: Suite = {
  name: 'inbox',
  about: 'the inbox, order per key and the audit trail, in PostgreSQL and in a SQLite file',
  cases: [groups, list, replay, fresh, ordered, auditOn],
};
