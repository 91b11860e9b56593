/** `redrive expedite`: tasks that should not wait any longer. */
import { taskAction } from '../tasks/task-action.ts';

export const commands = [
  taskAction({
    name: 'expedite',
    summary: 'Make tasks that wait due now.',
    about:
      'Whatever their policy or their due time says: for when you know that the other side is back. Nothing else about them ' +
      'changes. A lane that is paused or rests still holds them back, and so does the task before them in their ordering key. ' +
      'Exit code 1 if one of them is over, or unknown.',
    examples: [
      'redrive expedite 7d9f7b57-5c8b-4f0c-9a3e-0b6c0f6f3c11 # one',
      'redrive list --status pending --queue orders --json | jq -r .message_id | xargs redrive expedite --queue orders # all that wait for a queue',
    ],
    ask: (client, path, which) => client.post(`${path}/expedite`, {}, {}, which),
    tell: (result, id, paint) =>
      result === 'in_delivery'
        ? `${paint('yellow', 'in delivery')}  ${id}: it is on its way already.`
        : `${paint('green', 'expedited')}  ${id}: it is due now.`,
  }),
];
