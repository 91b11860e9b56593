/** `redrive list`: the tasks that there are. */
import { isTask } from '../answers.ts';
import { clientOf, connection } from '../client.ts';
import { command, exits } from '../command.ts';
import { limit, printList } from '../tasks/listing.ts';
import { absolute, type Column, outputOf, relative } from '../terminal/output.ts';
import { shown } from '../terminal/safe-text.ts';
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
      limit,
      ...connection,
    },
    examples: [
      'redrive list --status pending # what waits',
      'redrive list --lane https://api.example.com --limit 500 # of one lane',
      'redrive list --status failed --json | jq .error # for programs: one object per line',
    ],
    async run({ options, json }, io) {
      const { status, lane, queue } = options;
      await printList(clientOf(options, io), outputOf(io, json), json, {
        isOne: isTask,
        path: '/api/v1/retries',
        query: { status, lane, queue },
        limit: options.limit,
        columns,
        rowOf,
      });
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
    errorOf(task),
    absolute(at),
  ];
}

/** The error of what was handed over or has worked is an old one, which `redrive show` tells. */
function errorOf({ status, destination, error }: TaskView): string {
  if (status === 'retried') return `handed to ${destinationText(destination)}`;
  return status === 'done' ? '' : errorText(error);
}

/** Of what waits, what it waits for. */
function stateOf({ status, in_delivery: inDelivery, blocked, cancelling }: TaskView): string {
  if (cancelling) return 'cancelling';
  if (inDelivery) return 'in delivery';
  return blocked ? 'blocked' : status;
}
