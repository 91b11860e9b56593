import type { Engine } from '@redrive/engine';
import { type AuditStatsFold, createAuditStats } from 'redrive';
import { auditStatsView } from '../audit-stats-view.ts';
import { cursorOf, placeOf } from '../reading/cursor.ts';
import { AuditStats, AuditStatsFilter } from '../schemas/audit-stats.ts';
import { listOf } from '../schemas/common.ts';
import { AuditEntry, AuditFilter } from '../schemas/service.ts';
import { about, answers, forRole, type Routes } from './route.ts';

/** Events that are read for one answer, and how long that may take. */
const MAX_EVENTS = 200_000;
const PAGE = 1000;
const MAX_READ_MS = 10_000;
const USUAL_CATEGORIES = 100;

/** The trail of decisions and of what operators did. */
export const auditRoutes: Routes = (app, { engine, settings }) => {
  app.get(
    '/api/v1/audit',
    {
      ...forRole('reader'),
      schema: {
        ...about('audit', 'Read the audit trail', 'The newest first.'),
        querystring: AuditFilter,
        ...answers({ 200: listOf(AuditEntry, 'Events.') }, 'INVALID_CURSOR', 'AUDIT_UNREADABLE'),
      },
    },
    async ({ query }) => {
      const { type, message_id: messageId, from, to, limit = 100 } = query;
      const before = placeOf('audit', query.cursor);
      const { events, next } = await engine.auditEvents({
        limit,
        ...(before === undefined ? {} : { before }),
        ...(type === undefined ? {} : { type }),
        ...(messageId === undefined ? {} : { messageId: messageId.toLowerCase() }),
        ...(from === undefined ? {} : { fromMs: Date.parse(from) }),
        ...(to === undefined ? {} : { toMs: Date.parse(to) }),
      });
      return { items: events, next_cursor: next === undefined ? null : cursorOf('audit', next) };
    },
  );

  app.get(
    '/api/v1/audit/stats',
    {
      ...forRole('reader'),
      schema: {
        ...about(
          'audit',
          'Measure retries by the audit trail',
          `Attempts, success rate, retries per minute and errors per category. Reads the newest ${MAX_EVENTS} events at most, for ten seconds at most; \`complete\` says whether that was all. \`redrive audit stats\` takes longer trails, and files.`,
        ),
        querystring: AuditStatsFilter,
        ...answers({ 200: AuditStats }, 'AUDIT_UNREADABLE'),
      },
    },
    async ({ query }) => {
      const { by = 'category', from, to, limit = USUAL_CATEGORIES } = query;
      const times = {
        ...(from === undefined ? {} : { fromMs: Date.parse(from) }),
        ...(to === undefined ? {} : { toMs: Date.parse(to) }),
      };
      const fold = createAuditStats({ by, ...times });
      const maxMs = Math.min(MAX_READ_MS, settings.requestTimeoutMs / 2);
      const isComplete = await readTrail(engine, times, fold, maxMs);
      return auditStatsView(fold.report(), isComplete, limit);
    },
  );
};

/** The newest first. False: there is more than may be read. */
async function readTrail(
  engine: Pick<Engine, 'auditEvents'>,
  times: { fromMs?: number; toMs?: number },
  fold: AuditStatsFold,
  maxMs: number,
): Promise<boolean> {
  const endsAt = performance.now() + maxMs;
  let before: number | undefined;
  for (let read = 0; read < MAX_EVENTS && performance.now() < endsAt; read += PAGE) {
    const place = before === undefined ? {} : { before };
    const { events, next } = await engine.auditEvents({ limit: PAGE, ...times, ...place });
    for (const { event } of events) fold.add(event);
    if (next === undefined) return true;
    before = next;
  }
  return false;
}
