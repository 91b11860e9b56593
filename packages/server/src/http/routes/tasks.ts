import { type Destination, type Engine, laneOf, type Task, type TaskQuery } from '@redrive/engine';
import type { Static } from 'typebox';
import { Type } from 'typebox';
import { cursorOf, placeOf } from '../reading/cursor.ts';
import { readDestination } from '../reading/destination.ts';
import { Problem } from '../problem.ts';
import { listOf, ref } from '../schemas/common.ts';
import { type Acted, TaskFilter, TaskPath, WhichTask } from '../schemas/retries.ts';
import { Nothing } from '../schemas/review.ts';
import { invalid } from '../reading/validate.ts';
import { placeView, taskDetail, taskView } from '../views.ts';
import { about, answers, answersToBody, forRole, type Routes } from './route.ts';

const MAX_SHOWN = 10;

/** What is in the schedule, and what one may do to it. */
export const taskRoutes: Routes = (app, { engine }) => {
  app.get(
    '/api/v1/retries',
    {
      ...forRole('reader'),
      schema: {
        ...about('retries', 'List messages', 'The newest first, without their payloads.'),
        querystring: TaskFilter,
        ...answers({ 200: listOf(ref('Task'), 'Messages.') }, 'INVALID_CURSOR', 'INVALID_TASK'),
      },
    },
    async ({ query }) => {
      const { limit = 50 } = query;
      const tasks = await engine.list({ ...filterOf(query), limit: limit + 1 });
      const shown = tasks.slice(0, limit);
      const last = tasks.length > limit ? shown.at(-1) : undefined;
      return {
        items: shown.map(taskView),
        next_cursor: last ? cursorOf('tasks', last.id) : null,
      };
    },
  );

  app.get(
    '/api/v1/retries/:message_id',
    {
      ...forRole('reader'),
      schema: {
        ...about('retries', 'Show a message', 'With its payload and every execution that failed.'),
        params: TaskPath,
        querystring: WhichTask,
        ...answers({ 200: ref('TaskDetail') }, ...ofOne),
      },
    },
    async ({ params, query }) => {
      const task = await find(engine, params.message_id, query);
      return taskDetail(task, await engine.inbox.attempts(task.id));
    },
  );

  app.delete(
    '/api/v1/retries/:message_id',
    {
      ...forRole('operator'),
      schema: {
        ...about(
          'retries',
          'Cancel a message',
          'At once where it waits. In delivery (202, `cancelling`): unless that delivery works.',
        ),
        params: TaskPath,
        querystring: WhichTask,
        ...answers({ 200: ref('Acted'), 202: ref('Acted') }, ...ofOne, 'TASK_OVER'),
      },
    },
    async ({ params, query, by }, reply) => {
      const task = await find(engine, params.message_id, query);
      const result = await engine.cancel(task.messageId, task.destination, { by });
      if (result === 'cancelling') void reply.code(202);
      return actedOn(task, result);
    },
  );

  app.post(
    '/api/v1/retries/:message_id/expedite',
    {
      ...forRole('operator'),
      schema: {
        ...about('retries', 'Make a message due now'),
        params: TaskPath,
        querystring: WhichTask,
        body: Type.Optional(Nothing),
        ...answersToBody({ 200: ref('Acted') }, ...ofOne, 'TASK_OVER'),
      },
    },
    async ({ params, query, by }) => {
      const task = await find(engine, params.message_id, query);
      return actedOn(task, await engine.expedite(task.messageId, task.destination, { by }));
    },
  );

  app.post(
    '/api/v1/retries/:message_id/succeeded',
    {
      ...forRole('operator'),
      schema: {
        ...about(
          'retries',
          'Say that a message worked',
          'For consumers of a queue: what a queue took over is `retried` until somebody says so. `pending`: it waits, or is on its way.',
        ),
        params: TaskPath,
        querystring: WhichTask,
        body: Type.Optional(Nothing),
        ...answersToBody({ 200: ref('Acted') }, ...ofOne, 'TASK_OVER'),
      },
    },
    async ({ params, query, by }) => {
      const task = await find(engine, params.message_id, query);
      return actedOn(task, await engine.succeeded(task.messageId, task.destination, { by }));
    },
  );
};

const ofOne = ['TASK_UNKNOWN', 'AMBIGUOUS', 'NO_DESTINATION'] as const;

function filterOf(query: Static<typeof TaskFilter>): Omit<TaskQuery, 'limit'> {
  const { status, message_id: messageId } = query;
  const lane = laneIn(query);
  const before = placeOf('tasks', query.cursor);
  return {
    ...(status === undefined ? {} : { status }),
    ...(lane === undefined ? {} : { lane }),
    ...(messageId === undefined ? {} : { messageId: messageId.toLowerCase() }),
    ...(before === undefined ? {} : { before }),
  };
}

/** A lane by its name, or by that of its queue. */
export function laneIn(query: {
  lane?: string | undefined;
  queue?: string | undefined;
}): string | undefined {
  const { lane, queue } = query;
  if (queue === undefined) return lane;
  if (lane === undefined) return `queue:${queue}`;
  const message = 'Either lane or queue, and not both.';
  throw invalid([{ in: 'query', path: '/queue', code: 'INVALID_VALUE', message }]);
}

/** The one message that is meant. */
async function find(
  engine: Engine,
  messageId: string,
  which: Static<typeof WhichTask>,
): Promise<Task> {
  const id = messageId.toLowerCase();
  const destination = destinationIn(which);
  if (destination) {
    const task = await engine.get(id, destination);
    if (task) return task;
    throw new Problem('TASK_UNKNOWN', `There is no message ${id} for ${laneOf(destination)}.`);
  }
  const tasks = await engine.list({ messageId: id, limit: MAX_SHOWN + 1 });
  const [task, another] = tasks;
  if (!task) throw new Problem('TASK_UNKNOWN', `There is no message ${id}.`);
  if (!another) return task;
  const matches = tasks
    .slice(0, MAX_SHOWN)
    .map((one) => ({ ...placeView(one.destination), lane: one.lane, status: one.status }));
  throw new Problem(
    'AMBIGUOUS',
    `Message ${id} went to several destinations. Name one by queue or destination (?queue=NAME; on the command line --queue NAME).`,
    { more: { matches } },
  );
}

function destinationIn({ queue, destination }: Static<typeof WhichTask>): Destination | undefined {
  if (queue !== undefined && destination !== undefined) {
    const message = 'Either destination or queue, and not both.';
    throw invalid([{ in: 'query', path: '/queue', code: 'INVALID_VALUE', message }]);
  }
  if (queue !== undefined) return { kind: 'queue', address: queue };
  if (destination === undefined) return undefined;
  const read = readDestination(destination, { in: 'query', path: '/destination' });
  if ('fault' in read) throw invalid([read.fault]);
  return read.destination;
}

type Result = Static<typeof Acted>['result'];

function actedOn(task: Task, result: Result | 'over' | 'unknown'): Static<typeof Acted> {
  const { messageId, destination } = task;
  if (result === 'unknown') {
    throw new Problem('TASK_UNKNOWN', `The message ${messageId} was deleted meanwhile.`);
  }
  if (result === 'over') {
    const why = `The message ${messageId} is over (${task.status}), and cannot be changed here any more.`;
    const what = task.status === 'failed' ? `${why} It lies in review.` : why;
    throw new Problem('TASK_OVER', what);
  }
  return { message_id: messageId, destination, result };
}
