/** What cancel, expedite and succeeded share: one thing that is done to tasks, each by itself. */
import { isActed } from '../answers.ts';
import { type Client, clientOf, connection, ProblemError, type Query } from '../client.ts';
import { command, type Command, CommandError, exits } from '../command.ts';
import { type Output, outputOf } from '../terminal/output.ts';
import { shown } from '../terminal/safe-text.ts';
import type { Acted } from '../wire.ts';
import { wholeId } from './task-id.ts';

const options = {
  queue: {
    kind: 'text',
    value: 'name',
    summary: 'Which, where one message went to several queues.',
  },
  destination: { kind: 'text', value: 'destination', summary: 'The same for any destination.' },
  ...connection,
} as const;

interface TaskAction {
  name: string;
  summary: string;
  about: string;
  examples: readonly string[];
  ask(client: Client, path: string, which: Query): Promise<unknown>;
  /** What became of it; `id` may be shown as it is. */
  tell(result: Acted['result'], id: string, paint: Output['paint']): string;
  /** It was answered, and nothing came of it. */
  isInVain?(result: Acted['result']): boolean;
}

/** One that is refused holds up no other. */
export function taskAction(action: TaskAction): Command<typeof options> {
  const { name, summary, about, examples } = action;
  return command({
    name,
    summary,
    usage: `${name} <message_id>...`,
    about,
    options,
    examples,
    async run({ positionals, options: { queue, destination, ...where }, json }, io) {
      const client = clientOf(where, io);
      const output = outputOf(io, json);
      let refused = 0;
      for (const id of positionals) {
        try {
          const whole = await wholeId(client, id, { queue, destination }, 'change');
          const path = `/api/v1/retries/${encodeURIComponent(whole)}`;
          const answer = await action.ask(client, path, { queue, destination });
          const acted = client.as(isActed, answer);
          if (action.isInVain?.(acted.result) === true) refused += 1;
          output.data(acted);
          output.say(action.tell(acted.result, shown(whole), output.paint));
        } catch (error) {
          if (!(error instanceof CommandError) || error.exit !== exits.failed) throw error;
          refused += 1;
          const problem = error instanceof ProblemError ? error.problem : undefined;
          const { code, message } = error;
          output.data({ message_id: id, error: problem ?? { code, detail: message } });
          if (!json) io.err(`${shown(id)}: ${error.message}\n`);
        }
      }
      return refused > 0 ? exits.failed : exits.ok;
    },
  });
}
