/** `redrive show`: one task, with everything that happened to it. */
import { isTaskDetail } from '../answers.ts';
import { clientOf, connection } from '../client.ts';
import { command, exits } from '../command.ts';
import { facts, type Output, outputOf } from '../terminal/output.ts';
import { shown } from '../terminal/safe-text.ts';
import {
  attemptLines,
  destinationText,
  errorText,
  headerLines,
  momentOf,
  payloadLines,
  stateCell,
  textOf,
  timelineLine,
} from '../views.ts';
import type { TaskDetail } from '../wire.ts';
import { wholeId } from '../tasks/task-id.ts';

const SHOWN_LINES = 40;

export const commands = [
  command({
    name: 'show',
    summary: 'Show a task, its attempts and its payload.',
    usage: 'show <message_id>',
    about: 'Give the whole id, or its beginning if only one of the newest 2000 tasks has it.',
    options: {
      queue: {
        kind: 'text',
        value: 'name',
        summary: 'Which, where one message went to several queues.',
      },
      destination: { kind: 'text', value: 'destination', summary: 'The same for any destination.' },
      full: { kind: 'flag', summary: 'All of the payload.' },
      ...connection,
    },
    examples: [
      'redrive show 7d9f7b57-5c8b-4f0c-9a3e-0b6c0f6f3c11 # the task and its timeline',
      'redrive show 7d9f7b57-5c8b-4f0c-9a3e-0b6c0f6f3c11 --json | jq .payload # its payload',
    ],
    async run({ positionals, options, json }, io) {
      const client = clientOf(options, io);
      const output = outputOf(io, json);
      const { queue, destination } = options;
      const id = await wholeId(client, positionals[0]!, { queue, destination }, 'show');
      const path = `/api/v1/retries/${encodeURIComponent(id)}`;
      const task = client.as(isTaskDetail, await client.get(path, { queue, destination }));
      output.data(task);
      output.say(...taskLines(task, client.nowMs(), options.full, output));
      return exits.ok;
    },
  }),
];

function taskLines(task: TaskDetail, nowMs: number, full: boolean, output: Output): string[] {
  const { paint } = output;
  return [
    ...facts(
      [
        ['message', shown(task.message_id)],
        ['destination', destinationText(task.destination)],
        ['lane', shown(task.lane)],
        ['status', stateCell(task.status)],
        ['now', nowOf(task)],
        ['retries', `${task.retry_count} of ${task.max_retries}`],
        ['due', task.status === 'pending' ? momentOf(task.due_at, nowMs) : undefined],
        ['expires', momentOf(task.expires_at, nowMs)],
        ['order', textOf(task.ordering_key)],
        ['policy', textOf(task.policy)],
        ['replays', task.generation > 0 ? String(task.generation) : undefined],
        ['bulk job', task.job == null ? undefined : String(task.job)],
        [
          task.status === 'retried' ? 'error before' : 'last error',
          task.error ? { text: errorText(task.error), style: 'red' } : undefined,
        ],
        ['headers', headerLines(task.headers)],
      ],
      output,
    ),
    '',
    paint('bold', 'What happened'),
    ...timeline(task, nowMs, output),
    '',
    paint('bold', 'Payload'),
    ...payloadLines(task, full ? Infinity : SHOWN_LINES),
  ];
}

/** A broker took it over: it comes back if it fails there. */
function handedText({ destination }: TaskDetail): string {
  return `handed to ${destinationText(destination)}, not heard of since`;
}

/** What holds up a task that waits, or where it is now. */
function nowOf(task: TaskDetail): string | undefined {
  const { in_delivery: inDelivery, cancelling, blocked, status } = task;
  if (status === 'retried') return handedText(task);
  if (cancelling) return 'in delivery, and cancelled unless that succeeds';
  if (inDelivery) return 'in delivery';
  return blocked ? 'waits behind another task of its ordering key' : undefined;
}

function timeline(task: TaskDetail, nowMs: number, output: Output): string[] {
  const { created_at: created, finished_at: finished, status } = task;
  const lines = [
    timelineLine(created, 'taken in', 'cyan', nowMs, output),
    ...attemptLines(task.attempts, nowMs, output),
  ];
  const ends: Readonly<Record<string, string>> = {
    retried: handedText(task),
    done: 'it worked',
    failed: 'into the inbox: redrive review list shows it',
    cancelled: 'cancelled by an operator',
  };
  if (finished != null) {
    const style = status === 'failed' ? 'red' : 'green';
    lines.push(timelineLine(finished, ends[status] ?? shown(status), style, nowMs, output));
  } else if (status === 'pending' && !task.in_delivery) {
    lines.push(timelineLine(task.due_at, 'the next attempt', 'yellow', nowMs, output));
  }
  return lines;
}
