import { cursorOf, placeOf } from '../cursor.ts';
import { listOf } from '../schemas/common.ts';
import { AuditEntry, AuditFilter } from '../schemas/service.ts';
import { about, answers, forRole, type Routes } from './route.ts';

/** The trail of decisions and of what operators did. */
export const auditRoutes: Routes = (app, { engine }) => {
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
};
