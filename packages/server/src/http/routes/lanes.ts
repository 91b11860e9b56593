import { Type } from 'typebox';
import { cursorOf, nameOf } from '../reading/cursor.ts';
import { Nothing } from '../schemas/review.ts';
import { LaneChange, LaneFilter, LaneList, LanePath } from '../schemas/service.ts';
import { laneView } from '../views.ts';
import { about, answers, answersToBody, type App, forRole, type Routes } from './route.ts';

/** What waits where, and whether it may go. */
export const laneRoutes: Routes = (app, { engine }) => {
  app.get(
    '/api/v1/lanes',
    {
      ...forRole('reader'),
      schema: {
        ...about(
          'lanes',
          'List lanes',
          'A lane is one queue or one HTTP origin. They are sorted by name. Lanes without work are forgotten after a while.',
        ),
        querystring: LaneFilter,
        ...answers({ 200: LaneList }, 'INVALID_CURSOR'),
      },
    },
    async ({ query }) => {
      const { limit = 100, cursor, counts, ...filter } = query;
      const after = nameOf('lanes', cursor);
      const page = { ...filter, ...(after === undefined ? {} : { after }) };
      const lanes = await engine.lanes({ ...page, limit });
      const last = lanes.length === limit ? lanes.at(-1) : undefined;
      return {
        items: lanes.map(laneView),
        next_cursor: last ? cursorOf('lanes', last.lane) : null,
        ...(counts ? { counts: await engine.laneCounts() } : {}),
      };
    },
  );

  addChange(app, 'pause', 'Stop deliveries of a lane', true, (lane, by) => engine.pause(lane, by));
  addChange(app, 'resume', 'Let a lane deliver again', false, async (lane, by) => {
    const found = await engine.lanes({ prefix: lane, limit: 1 });
    const before = found.find((one) => one.lane === lane);
    await engine.resume(lane, by);
    return { known: before !== undefined, was_paused: before?.state === 'paused' };
  });
};

function addChange(
  app: App,
  name: string,
  summary: string,
  paused: boolean,
  change: (lane: string, by: string) => Promise<{ known: boolean; was_paused?: boolean }>,
): void {
  app.post(
    `/api/v1/lanes/:lane/${name}`,
    {
      ...forRole('operator'),
      schema: {
        ...about('lanes', summary, 'The name is URL-encoded: `https:%2F%2Fapi.example.com`.'),
        params: LanePath,
        body: Type.Optional(Nothing),
        ...answersToBody({ 200: LaneChange }, 'INVALID_TASK'),
      },
    },
    async ({ params, by }) => {
      const said = await change(params.lane, by);
      return { lane: params.lane, paused, ...said };
    },
  );
}
