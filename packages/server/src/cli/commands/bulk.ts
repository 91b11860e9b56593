/** `redrive bulk`: many items of the inbox at once, as a job that the server carries out. */
import { isJob, isMember, isPreview } from '../answers.ts';
import { watchJob } from '../tasks/bulk-watch.ts';
import { clientOf, connection } from '../client.ts';
import { command, type Command, exits } from '../command.ts';
import { readId, usageError } from '../inputs.ts';
import { jobLines } from '../tasks/job-lines.ts';
import { limit, printList } from '../tasks/listing.ts';
import { type Column, grid, outputOf, plural, relative } from '../terminal/output.ts';
import { untilInterrupted } from '../terminal/progress.ts';
import { shown } from '../terminal/safe-text.ts';
import { filterOf, selection, type Selected } from '../tasks/selection.ts';
import { destinationText, errorText, stateCell, textOf } from '../views.ts';
import type { ItemView, JobView } from '../wire.ts';

const all = { kind: 'flag', summary: 'Everything that is open.' } as const;
const ids = { kind: 'text', value: 'ids', summary: 'These items: 41,42,43.' } as const;

const sampleColumns: readonly Column[] = [
  { title: 'ID', right: true },
  { title: 'REASON' },
  { title: 'DESTINATION', least: 10, good: 24 },
  { title: 'ERROR', least: 12, good: 30 },
  { title: 'LAST SEEN' },
];

const jobColumns: readonly Column[] = [
  { title: 'JOB', right: true },
  { title: 'ACTION' },
  { title: 'STATE' },
  { title: 'DONE', right: true },
  { title: 'BACK', right: true },
  { title: 'BEGAN' },
  { title: 'BY', optional: true, least: 8 },
  { title: 'WHY', optional: true, least: 12 },
];

export const commands: readonly Command[] = [
  command({
    name: 'bulk preview',
    summary: 'Show what a bulk job would take.',
    usage: 'bulk preview',
    options: { ...selection, ids, all, ...connection },
    examples: ['redrive bulk preview --lane queue:orders --reason EXHAUSTED'],
    async run({ options, json }, io) {
      const client = clientOf(options, io);
      const output = outputOf(io, json);
      const body = selectionOf(options, client.nowMs());
      const path = '/api/v1/review/bulk/preview';
      const preview = client.as(isPreview, await client.post(path, body));
      output.data(preview);
      const nowMs = client.nowMs();
      output.say(`It would take ${plural(preview.count, 'item')}.`);
      if (preview.sample.length > 0) {
        output.say(
          '',
          ...grid(
            sampleColumns,
            preview.sample.map((item) => sampleRow(item, nowMs)),
            output,
          ),
        );
      }
      return exits.ok;
    },
  }),
  command({
    name: 'bulk start',
    summary: 'Begin a bulk job.',
    usage: 'bulk start',
    about:
      'The server carries it out, whatever becomes of this terminal. With a canary the first steps are small, and the next ' +
      'begins when nothing of the last came back; then it stops by itself and says why.',
    options: {
      ...selection,
      ids,
      all,
      action: {
        kind: 'choice',
        of: ['replay', 'resolve', 'discard'],
        default: 'replay',
        summary: 'What to do with them.',
      },
      'per-second': {
        kind: 'number',
        value: 'n',
        min: 0.001,
        max: 100_000,
        summary: 'So many a second; as fast as they are worked off unless given.',
      },
      canary: { kind: 'text', value: 'sizes', summary: 'The first steps: 1,10,100.' },
      observe: {
        kind: 'duration',
        value: 'time',
        summary: 'How long nothing of a step may have come back from a queue.',
      },
      'max-failures': {
        kind: 'number',
        value: 'n',
        min: 0,
        max: 1_000_000,
        whole: true,
        summary: 'Stops when more have come back; 0 with a canary, never without.',
      },
      destination: { kind: 'text', value: 'destination', summary: 'Send them there instead.' },
      watch: { kind: 'flag', summary: 'Stay and watch it.' },
      ...connection,
    },
    examples: [
      'redrive bulk start --group 3f2a9c1d7be04a55 --canary 1,10,100 --watch # carefully',
      'redrive bulk start --lane queue:orders --per-second 50 # slowly',
      'redrive bulk start --action discard --reason EXPIRED # take them away',
    ],
    async run({ options, json }, io) {
      const client = clientOf(options, io);
      const output = outputOf(io, json);
      const answer = await client.post('/api/v1/review/bulk', {
        ...selectionOf(options, client.nowMs()),
        action: options.action,
        per_second: options['per-second'],
        canary: options.canary === undefined ? undefined : sizesOf('--canary', options.canary),
        observe_ms: options.observe,
        max_failures: options['max-failures'],
        destination: options.destination,
      });
      const job = client.as(isJob, answer);
      output.say(`Job ${job.id} has begun.`);
      if (!options.watch) {
        output.data(job);
        output.say(
          `redrive bulk watch ${job.id} follows it; redrive bulk pause ${job.id} holds it.`,
        );
        return exits.ok;
      }
      using interrupt = untilInterrupted();
      return await watchJob(job.id, client, output, io, interrupt.signal);
    },
  }),
  command({
    name: 'bulk list',
    summary: 'List bulk jobs, the newest first.',
    usage: 'bulk list',
    options: { limit, ...connection },
    examples: ['redrive bulk list'],
    async run({ options, json }, io) {
      await printList(clientOf(options, io), outputOf(io, json), json, {
        isOne: isJob,
        path: '/api/v1/review/bulk',
        query: {},
        limit: options.limit,
        columns: jobColumns,
        rowOf: jobRow,
      });
      return exits.ok;
    },
  }),
  command({
    name: 'bulk members',
    summary: 'List the items of a bulk job, the oldest first, and what became of each.',
    usage: 'bulk members <job>',
    about:
      'done: sent, or closed. closed, unknown, gone: somebody else was faster. conflict: another task of the message is at the ' +
      'destination. unaddressed: it says nowhere where it goes. fault: the store cannot write it. None: its turn has not come.',
    options: {
      result: {
        kind: 'choice',
        of: ['done', 'closed', 'unknown', 'gone', 'conflict', 'unaddressed', 'fault'],
        summary: 'Only those that this became of.',
      },
      limit,
      ...connection,
    },
    examples: ['redrive bulk members 7 --result conflict # what it could not send'],
    async run({ positionals, options, json }, io) {
      await printList(clientOf(options, io), outputOf(io, json), json, {
        isOne: isMember,
        path: `/api/v1/review/bulk/${readId(positionals[0], 'a job')}/members`,
        query: { result: options.result },
        limit: options.limit,
        columns: [{ title: 'ITEM', right: true }, { title: 'RESULT' }],
        rowOf: ({ item_id: item, result }) => [String(item), shown(textOf(result) ?? '')],
        first: 'oldest',
      });
      return exits.ok;
    },
  }),
  command({
    name: 'bulk watch',
    summary: 'Watch a bulk job until it is over.',
    usage: 'bulk watch <job>',
    about:
      'Ctrl-C ends the watching, not the job. Exit code 1 if the job stopped by itself or was cancelled.\n' +
      'With --json one line each time something has changed.',
    options: connection,
    examples: ['redrive bulk watch 7'],
    async run({ positionals, options, json }, io) {
      const id = readId(positionals[0], 'a job');
      using interrupt = untilInterrupted();
      return await watchJob(id, clientOf(options, io), outputOf(io, json), io, interrupt.signal);
    },
  }),
  steer('pause', 'Hold a bulk job; what was sent stays sent.'),
  steer('resume', 'Let a bulk job go on, also one that stopped by itself.'),
  steer('cancel', 'End a bulk job; what was not sent stays in the inbox.'),
];

function steer(action: 'pause' | 'resume' | 'cancel', summary: string): Command<typeof connection> {
  return command({
    name: `bulk ${action}`,
    summary,
    usage: `bulk ${action} <job>`,
    options: connection,
    examples: [`redrive bulk ${action} 7`],
    async run({ positionals, options, json }, io) {
      const client = clientOf(options, io);
      const output = outputOf(io, json);
      const id = readId(positionals[0], 'a job');
      const job = client.as(isJob, await client.post(`/api/v1/review/bulk/${id}/${action}`));
      output.data(job);
      output.say(...jobLines(job, output));
      return exits.ok;
    },
  });
}

function selectionOf(
  options: Selected & { all: boolean; ids: string | undefined },
  nowMs: number,
): object {
  const filter = filterOf(options, nowMs);
  const isFiltered = Object.keys(filter).length > 0;
  if (options.all && (isFiltered || options.ids !== undefined)) {
    throw usageError('--all is everything: it goes with no filter.');
  }
  if (options.all) return { all: true };
  if (options.ids === undefined && !isFiltered) {
    throw usageError(
      'Which items? Give a filter (--lane, --group, --reason, ...), --ids, or --all.',
    );
  }
  if (options.ids === undefined) return { filter };
  if (isFiltered) throw usageError('--ids names them all: it goes with no filter.');
  return { ids: sizesOf('--ids', options.ids) };
}

function sizesOf(option: string, text: string): number[] {
  const sizes = text.split(',').map((part) => Number(part.trim()));
  if (sizes.every((size) => Number.isSafeInteger(size) && size > 0)) return sizes;
  throw usageError(`${option}: '${shown(text)}' are not whole numbers with commas between them.`);
}

function sampleRow(item: ItemView, nowMs: number) {
  return [
    String(item.id),
    shown(item.reason),
    destinationText(item.destination),
    errorText(item.error),
    relative(item.last_seen_at, nowMs),
  ];
}

function jobRow(job: JobView, nowMs: number) {
  return [
    String(job.id),
    shown(job.action),
    stateCell(job.state),
    `${job.done + job.skipped + job.failed}/${job.total}`,
    String(job.back),
    relative(job.created_at, nowMs),
    textOf(job.by) ?? '',
    textOf(job.why) ?? '',
  ];
}
