import type { Engine, JobReport, Selection as EngineSelection } from '@redrive/engine';
import type { Static } from 'typebox';
import { Type } from 'typebox';
import { cursorOf, placeOf } from '../reading/cursor.ts';
import { destinationFaults, readDestination } from '../reading/destination.ts';
import type { WireFault } from '../reading/faults.ts';
import { BulkStart, JobPage, JobPath, Member, MemberFilter } from '../schemas/bulk.ts';
import { listOf, ref } from '../schemas/common.ts';
import { Nothing, Preview, Selection } from '../schemas/review.ts';
import { bodyWith, refuseIf } from '../reading/validate.ts';
import { itemView, jobView, memberView } from '../views.ts';
import { filterFaults, filterIn } from './review.ts';
import { about, answers, answersToBody, type App, forRole, type Routes } from './route.ts';

/** The same done to many items. */
export const bulkRoutes: Routes = (app, { engine }) => {
  const { inbox } = engine;

  app.post(
    '/api/v1/review/bulk/preview',
    {
      config: { role: 'reader', idempotency: false },
      schema: {
        ...about('bulk', 'Show what a bulk job would take', 'The exact count, and the newest ten.'),
        body: Selection,
        ...answersToBody({ 200: Preview }, 'EMPTY_FILTER', 'INVALID_FILTER'),
      },
      validatorCompiler: bodyWith(selectionFaults),
    },
    async ({ body }) => {
      refuseIf(selectionFaults(body));
      const { count, sample } = await inbox.preview(selectionIn(body));
      return { count, sample: sample.map(itemView) };
    },
  );

  app.post(
    '/api/v1/review/bulk',
    {
      ...forRole('operator'),
      schema: {
        ...about(
          'bulk',
          'Start a bulk job',
          'Exactly one of `filter`, `ids` and `all` says which open items it takes. Any instance carries it on.',
        ),
        body: BulkStart,
        ...answersToBody(
          { 202: ref('Job') },
          'EMPTY_FILTER',
          'INVALID_FILTER',
          'NOTHING_MATCHES',
          'TOO_MANY_JOBS',
          'NO_DESTINATION',
          'ADDRESS_REFUSED',
          'INVALID_TASK',
        ),
      },
      validatorCompiler: bodyWith(startFaults),
    },
    async ({ body, by }, reply) => {
      refuseIf(startFaults(body));
      const job = await start(engine, body, by);
      void reply.header('location', `/api/v1/review/bulk/${job.id}`);
      return reply.code(202).send(jobView(job));
    },
  );

  app.get(
    '/api/v1/review/bulk',
    {
      ...forRole('reader'),
      schema: {
        ...about('bulk', 'List bulk jobs', 'The newest first.'),
        querystring: JobPage,
        ...answers({ 200: listOf(ref('Job'), 'Bulk jobs.') }, 'INVALID_CURSOR'),
      },
    },
    async ({ query }) => {
      const { limit = 100 } = query;
      const before = placeOf('jobs', query.cursor);
      const jobs = await inbox.jobs({
        ...(before === undefined ? {} : { before }),
        limit: limit + 1,
      });
      const shown = jobs.slice(0, limit);
      const last = jobs.length > limit ? shown.at(-1) : undefined;
      return { items: shown.map(jobView), next_cursor: last ? cursorOf('jobs', last.id) : null };
    },
  );

  app.get(
    '/api/v1/review/bulk/:id',
    {
      ...forRole('reader'),
      schema: {
        ...about('bulk', 'Show how far a bulk job is'),
        params: JobPath,
        ...answers({ 200: ref('Job') }, 'JOB_UNKNOWN'),
      },
    },
    async ({ params }) => jobView(await inbox.job(params.id)),
  );

  app.get(
    '/api/v1/review/bulk/:id/members',
    {
      ...forRole('reader'),
      schema: {
        ...about(
          'bulk',
          'List the items of a bulk job',
          'The oldest first, and what became of each.',
        ),
        params: JobPath,
        querystring: MemberFilter,
        ...answers({ 200: listOf(Member, 'Members.') }, 'JOB_UNKNOWN', 'INVALID_CURSOR'),
      },
    },
    async ({ params, query }) => {
      const { result, limit = 100 } = query;
      const after = placeOf('members', query.cursor) ?? 0;
      const members = await inbox.members(params.id, {
        ...(result === undefined ? {} : { result }),
        after,
        limit: limit + 1,
      });
      const shown = members.slice(0, limit);
      const last = members.length > limit ? shown.at(-1) : undefined;
      return {
        items: shown.map(memberView),
        next_cursor: last ? cursorOf('members', last.itemId) : null,
      };
    },
  );

  addChange(app, 'pause', 'Pause a bulk job', (id, by) => inbox.pauseJob(id, { by }));
  addChange(app, 'resume', 'Carry a bulk job on, also one that stopped by itself', (id, by) =>
    inbox.resumeJob(id, { by }),
  );
  addChange(app, 'cancel', 'End a bulk job: what was sent stays sent', (id, by) =>
    inbox.cancelJob(id, { by }),
  );
};

function addChange(
  app: App,
  name: string,
  summary: string,
  change: (id: number, by: string) => Promise<JobReport>,
): void {
  app.post(
    `/api/v1/review/bulk/:id/${name}`,
    {
      ...forRole('operator'),
      schema: {
        ...about('bulk', summary),
        params: JobPath,
        body: Type.Optional(Nothing),
        ...answersToBody({ 200: ref('Job') }, 'JOB_UNKNOWN', 'JOB_OVER'),
      },
    },
    async ({ params, by }) => jobView(await change(params.id, by)),
  );
}

/** Which items: exactly one of the three ways to say it. */
function selectionIn({ filter, ids }: Static<typeof Selection>): EngineSelection {
  if (filter) return filterIn(filter);
  return ids ? { ids } : { all: true };
}

function selectionFaults({ filter, ids, all }: Partial<Record<string, unknown>>): WireFault[] {
  const faults = filterFaults(filter);
  const given = [filter, ids, all].filter((one) => one !== undefined).length;
  if (given === 1) return faults;
  const message = 'Exactly one of filter, ids and all is needed: { "all": true } takes all.';
  return [...faults, fault('', given === 0 ? 'MISSING_FIELD' : 'INVALID_VALUE', message)];
}

/** What only a replay has. */
const ofReplays = ['per_second', 'canary', 'observe_ms', 'max_failures', 'destination'] as const;

function startFaults(body: Partial<Record<string, unknown>>): WireFault[] {
  const faults = selectionFaults(body);
  const { action, destination } = body;
  if (action === 'resolve' || action === 'discard') {
    for (const name of ofReplays.filter((one) => body[one] !== undefined)) {
      faults.push(fault(`/${name}`, 'INVALID_VALUE', 'Only a replay has this.'));
    }
  } else if (destination !== undefined) faults.push(...destinationFaults(destination));
  return faults;
}

async function start(
  { inbox }: Engine,
  body: Static<typeof BulkStart>,
  by: string,
): Promise<JobReport> {
  const { action } = body;
  const selection = selectionIn(body);
  if (action === 'resolve') return inbox.resolveAll(selection, { by });
  if (action === 'discard') return inbox.discardAll(selection, { by });
  const { per_second, canary, observe_ms, max_failures, destination } = body;
  const read = destination === undefined ? undefined : readDestination(destination);
  return inbox.replayAll(selection, {
    by,
    ...(per_second === undefined ? {} : { perSecond: per_second }),
    ...(canary === undefined ? {} : { canary }),
    ...(observe_ms === undefined ? {} : { observeMs: observe_ms }),
    ...(max_failures === undefined ? {} : { maxFailures: max_failures }),
    ...(read && 'destination' in read ? { to: read.destination } : {}),
  });
}

function fault(path: string, code: string, message: string): WireFault {
  return { in: 'body', path, code, message };
}
