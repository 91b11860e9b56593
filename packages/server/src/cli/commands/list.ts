/** `redrive list`: the tasks that there are. */
import { isTask } from '../answers.ts';
import { clientOf, connection } from '../client.ts';
import { command, exits } from '../command.ts';
import { absolute, type Column, grid, outputOf, relative } from '../output.ts';
import { shown } from '../safe-text.ts';
import { destinationText, errorText, stateCell } from '../views.ts';
import type { TaskView } from '../wire.ts';

const columns: readonly Column[] = [
  { title: 'MESSAGE ID' },
  { title: 'DESTINATION', least: 8, good: 24 },
  { title: 'STATUS' },
  { title: 'RETRIES', right: true, optional: true },
  { title: 'WHEN' },
  { title: 'LAST ERROR', least: 16, good: 24, optional: true },
  { title: 'AT (UTC)', optional: true },
];

export const commands = [
  command({
    name: 'list',
    summary: 'List tasks, the newest first.',
    usage: 'list',
    about:
      'pending: it waits, or is on its way. retried: its queue took it over, and nothing was heard since. done: it worked. ' +
      'failed: it lies in the inbox. cancelled: by an operator.',
    options: {
      status: {
        kind: 'choice',
        of: ['pending', 'retried', 'done', 'failed', 'cancelled'],
        summary: 'Only those in this state.',
      },
      lane: {
        kind: 'text',
        value: 'lane',
        summary: 'Only those of this lane: queue:orders, https://api.example.com.',
      },
      queue: { kind: 'text', value: 'name', summary: 'Only those for this queue.' },
      limit: {
        kind: 'number',
        value: 'n',
        min: 1,
        max: 100_000,
        whole: true,
        default: 50,
        summary: 'At most so many.',
      },
      ...connection,
    },
    examples: [
      'redrive list --status pending # what waits',
      'redrive list --lane https://api.example.com --limit 500 # of one lane',
      'redrive list --status failed --json | jq .error # for programs: one object per line',
    ],
    async run({ options, json }, io) {
      const { status, lane, queue, limit } = options;
      const client = clientOf(options, io);
      const output = outputOf(io, json);
      const tasks: TaskView[] = [];
      for await (const task of client.items(
        isTask,
        '/api/v1/retries',
        { status, lane, queue },
        limit,
      )) {
        if (json) output.data(task);
        else tasks.push(task);
      }
      const nowMs = client.nowMs();
      if (tasks.length === 0) output.say('There are none.');
      else
        output.say(
          ...grid(
            columns,
            tasks.map((task) => rowOf(task, nowMs)),
            output,
          ),
        );
      if (tasks.length === limit)
        output.say('', `These are the newest ${limit}; --limit shows more.`);
      return exits.ok;
    },
  }),
];

function rowOf(task: TaskView, nowMs: number) {
  const at = task.finished_at ?? task.due_at;
  return [
    shown(task.message_id),
    destinationText(task.destination),
    stateCell(stateOf(task)),
    `${task.retry_count}/${task.max_retries}`,
    relative(at, nowMs),
    errorText(task.error),
    absolute(at),
  ];
}

/** Of what waits, what it waits for. */
function stateOf({ status, in_delivery: inDelivery, blocked, cancelling }: TaskView): string {
  if (cancelling) return 'cancelling';
  if (inDelivery) return 'in delivery';
  return blocked ? 'blocked' : status;
}
