/** `redrive cancel`: tasks that are not wanted any more. */
import { taskAction } from '../tasks/task-action.ts';

export const commands = [
  taskAction({
    name: 'cancel',
    summary: 'Cancel tasks that wait.',
    about:
      'What is in delivery is cancelled when that fails; what succeeds has happened. Exit code 1 if one of them could not be ' +
      'cancelled.',
    examples: [
      'redrive cancel 7d9f7b57-5c8b-4f0c-9a3e-0b6c0f6f3c11 # one',
      'redrive list --lane queue:orders --json | jq -r .message_id | xargs redrive cancel # many',
    ],
    ask: (client, path, which) => client.delete(path, which),
    tell: (result, id, paint) =>
      result === 'cancelling'
        ? `${paint('yellow', 'cancelling')}  ${id}: it is in delivery, and cancelled unless that succeeds.`
        : `${paint('green', 'cancelled')}  ${id}`,
  }),
];
