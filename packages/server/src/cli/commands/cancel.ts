/** `redrive cancel`: tasks that are not wanted any more. */
import { isActed } from '../answers.ts';
import { clientOf, connection, ProblemError } from '../client.ts';
import { command, exits } from '../command.ts';
import { outputOf } from '../output.ts';
import { shown } from '../safe-text.ts';

export const commands = [
  command({
    name: 'cancel',
    summary: 'Cancel tasks that wait.',
    usage: 'cancel <message_id>...',
    about:
      'What is in delivery is cancelled when that fails; what succeeds has happened. Exit code 1 if one of them could not be ' +
      'cancelled.',
    options: {
      queue: {
        kind: 'text',
        value: 'name',
        summary: 'Which, where one message went to several queues.',
      },
      destination: { kind: 'text', value: 'destination', summary: 'The same for any destination.' },
      ...connection,
    },
    examples: [
      'redrive cancel 7d9f7b57-5c8b-4f0c-9a3e-0b6c0f6f3c11 # one',
      'redrive list --lane queue:orders --json | jq -r .message_id | xargs redrive cancel # many',
    ],
    async run({ positionals, options, json }, io) {
      const client = clientOf(options, io);
      const output = outputOf(io, json);
      let refused = 0;
      for (const id of positionals) {
        try {
          const path = `/api/v1/retries/${encodeURIComponent(id)}`;
          const { queue, destination } = options;
          const acted = client.as(isActed, await client.delete(path, { queue, destination }));
          output.data(acted);
          output.say(
            acted.result === 'cancelling'
              ? `${output.paint('yellow', 'cancelling')}  ${shown(id)}: it is in delivery, and cancelled unless that succeeds.`
              : `${output.paint('green', 'cancelled')}  ${shown(id)}`,
          );
        } catch (error) {
          if (!(error instanceof ProblemError) || error.exit !== exits.failed) throw error;
          refused += 1;
          output.data({ message_id: id, error: error.problem });
          if (!json) io.err(`${shown(id)}: ${error.message}\n`);
        }
      }
      return refused > 0 ? exits.failed : exits.ok;
    },
  }),
];
