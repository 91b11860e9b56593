/** `redrive succeeded`: what a queue took over, and has worked there. */
import { taskAction } from '../tasks/task-action.ts';

export const commands = [
  taskAction({
    name: 'succeeded',
    summary: 'Mark tasks as done that were handed to a queue.',
    about:
      'A queue cannot say so itself: what it took over is retried until somebody says that it worked. Usually its consumer ' +
      'does, by the API. A bulk job with a canary goes on at once when all of a step have worked. Exit code 1 if one of them ' +
      'waits, is on its way, ended otherwise, or is unknown.',
    examples: [
      'redrive succeeded 7d9f7b57-5c8b-4f0c-9a3e-0b6c0f6f3c11 # one',
      'redrive succeeded 7d9f7b57-5c8b-4f0c-9a3e-0b6c0f6f3c11 --queue orders # of several queues this one',
    ],
    ask: (client, path, which) => client.post(`${path}/succeeded`, {}, {}, which),
    tell: (result, id, paint) =>
      result === 'pending'
        ? `${paint('yellow', 'pending')}  ${id}: it waits, or is on its way. Nothing was changed; redrive cancel ends it.`
        : `${paint('green', 'done')}  ${id}`,
    isInVain: (result) => result === 'pending',
  }),
];
