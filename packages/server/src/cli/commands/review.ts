/** `redrive review`: what never worked, and what one does about it. */
import { isErasedItem, isGroup, isItem, isItemDetail } from '../answers.ts';
import { type Client, clientOf, connection, ProblemError } from '../client.ts';
import { command, type Command, exits, type Io } from '../command.ts';
import { messageOf, readHeaders, readId, usageError } from '../inputs.ts';
import { limit, printList } from '../tasks/listing.ts';
import {
  absolute,
  type Column,
  grid,
  type Output,
  outputOf,
  relative,
} from '../terminal/output.ts';
import { editItem } from '../tasks/review-edit.ts';
import { itemLines } from '../tasks/review-item.ts';
import { shown } from '../terminal/safe-text.ts';
import { filterOf, selection } from '../tasks/selection.ts';
import { destinationText, errorText, stateCell, textOf } from '../views.ts';
import type { ErasedItem, GroupView, ItemView } from '../wire.ts';

const itemColumns: readonly Column[] = [
  { title: 'ID', right: true },
  { title: 'REASON' },
  { title: 'DESTINATION', least: 10, good: 24 },
  { title: 'ERROR', least: 12, good: 30 },
  { title: 'LAST SEEN' },
  { title: 'TIMES', right: true, optional: true },
  { title: 'STATE', optional: true },
  { title: 'MESSAGE ID', optional: true },
  { title: 'AT (UTC)', optional: true },
];

const groupColumns: readonly Column[] = [
  { title: 'GROUP' },
  { title: 'OPEN', right: true },
  { title: 'LANE', least: 10, good: 24 },
  { title: 'ERROR', least: 12, good: 30 },
  { title: 'LAST SEEN' },
  { title: 'OWNER', optional: true, least: 8 },
  { title: 'NOTE', optional: true, least: 12 },
];

const changes = {
  payload: {
    kind: 'text',
    value: 'payload',
    summary: 'Another payload: JSON or text, @file, or - for the standard input.',
  },
  raw: { kind: 'flag', summary: 'That payload as bytes, whatever it looks like.' },
  header: {
    kind: 'texts',
    value: 'name: value',
    summary: 'All headers, in place of the old ones; may be given again.',
  },
  destination: {
    kind: 'text',
    value: 'destination',
    summary: 'Another destination: a URL, or queue:name.',
  },
} as const;

export const commands: readonly Command[] = [
  command({
    name: 'review list',
    summary: 'List what lies in the inbox, the newest first.',
    usage: 'review list',
    options: {
      ...selection,
      state: {
        kind: 'choice',
        of: ['open', 'replayed', 'resolved', 'discarded', 'erased', 'all'],
        default: 'open',
        summary: 'In which state.',
      },
      limit,
      ...connection,
    },
    examples: [
      'redrive review list # what is open',
      'redrive review list --lane queue:orders --since 1h # of one lane, from the last hour',
      'redrive review list --reason EXHAUSTED --json # for programs: one object per line',
    ],
    async run({ options, json }, io) {
      const client = clientOf(options, io);
      const output = outputOf(io, json);
      const [newest] = await printList(client, output, json, {
        isOne: isItem,
        path: '/api/v1/review',
        query: { ...filterOf(options, client.nowMs()), state: options.state },
        limit: options.limit,
        columns: itemColumns,
        rowOf: itemRow,
      });
      if (!newest) return exits.ok;
      output.say('', `redrive review show ${newest.id} tells more; redrive review groups sums up.`);
      return exits.ok;
    },
  }),
  command({
    name: 'review groups',
    summary: 'List the causes: items that failed in the same way together.',
    usage: 'review groups',
    options: {
      lane: { kind: 'text', value: 'lane', summary: 'Only those of this lane.' },
      all: { kind: 'flag', summary: 'Also those without open items.' },
      limit,
      ...connection,
    },
    examples: [
      'redrive review groups # what went wrong, and how often',
      'redrive bulk preview --group 3f2a9c1d7be04a55 # what a bulk job on one of them would take',
    ],
    async run({ options, json }, io) {
      await printList(clientOf(options, io), outputOf(io, json), json, {
        isOne: isGroup,
        path: '/api/v1/review/groups',
        query: { lane: options.lane, ...(options.all ? { all: true } : {}) },
        limit: options.limit,
        columns: groupColumns,
        rowOf: groupRow,
      });
      return exits.ok;
    },
  }),
  command({
    name: 'review note',
    summary: 'Write on a cause what is known of it, or who sees to it.',
    usage: 'review note <group>',
    about: 'What is not given stays.',
    options: {
      note: { kind: 'text', value: 'text', summary: 'What is known.' },
      owner: { kind: 'text', value: 'name', summary: 'Who sees to it.' },
      'no-note': { kind: 'flag', summary: 'Takes the note away.' },
      'no-owner': { kind: 'flag', summary: 'Nobody sees to it any more.' },
      ...connection,
    },
    examples: [
      `redrive review note 3f2a9c1d7be04a55 --owner payments --note 'waits for the import'`,
    ],
    async run({ positionals, options, json }, io) {
      const note = options['no-note'] ? '' : options.note;
      const owner = options['no-owner'] ? '' : options.owner;
      if (note === undefined && owner === undefined) throw usageError('Give --note or --owner.');
      const client = clientOf(options, io);
      const output = outputOf(io, json);
      const path = `/api/v1/review/groups/${encodeURIComponent(positionals[0]!)}`;
      const after = client.as(isGroup, await client.patch(path, { note, owner }));
      output.data(after);
      output.say(...grid(groupColumns, [groupRow(after, client.nowMs())], output));
      return exits.ok;
    },
  }),
  command({
    name: 'review show',
    summary: 'Show an item: its attempts, its payload, and what an edit changes.',
    usage: 'review show <id>',
    options: { full: { kind: 'flag', summary: 'All of the payload.' }, ...connection },
    examples: ['redrive review show 42', 'redrive review show 42 --json | jq .payload'],
    async run({ positionals, options, json }, io) {
      const client = clientOf(options, io);
      const output = outputOf(io, json);
      const path = `/api/v1/review/${readId(positionals[0], 'an item')}`;
      const item = client.as(isItemDetail, await client.get(path));
      output.data(item);
      output.say(...itemLines(item, client.nowMs(), options.full, output));
      return exits.ok;
    },
  }),
  command({
    name: 'review replay',
    summary: 'Send items again, with changes if there are any.',
    usage: 'review replay <id>...',
    about:
      'What was written by redrive review edit is sent as it was edited. For many at once see redrive bulk start.',
    options: { ...changes, ...connection },
    examples: [
      'redrive review replay 42 43 # as they are',
      `redrive review replay 42 --payload @fixed.json # with another payload`,
      'redrive review replay 42 --destination queue:orders.new # to somewhere else',
    ],
    async run({ positionals, options, json }, io) {
      const body = {
        ...(options.payload === undefined ? {} : await messageOf(options.payload, options.raw, io)),
        ...(options.header.length > 0 ? { headers: readHeaders(options.header) } : {}),
        ...(options.destination === undefined ? {} : { destination: options.destination }),
      };
      return each(positionals, 'replay', body, clientOf(options, io), outputOf(io, json), io, json);
    },
  }),
  command({
    name: 'review edit',
    summary: 'Change an item before it is sent again. The original is kept.',
    usage: 'review edit <id>',
    about:
      'Opens the payload in VISUAL or EDITOR, unless the changes are given. Shows what they change.',
    options: {
      ...changes,
      undo: { kind: 'flag', summary: 'Take the changes away again.' },
      replay: { kind: 'flag', summary: 'And send it.' },
      ...connection,
    },
    examples: [
      'redrive review edit 42 # in your editor',
      'redrive review edit 42 --payload @fixed.json --replay # from a file, and off it goes',
      'redrive review edit 42 --undo # as it was',
    ],
    run: ({ positionals, options, json }, io) =>
      editItem(
        readId(positionals[0], 'an item'),
        options,
        clientOf(options, io),
        outputOf(io, json),
        io,
      ),
  }),
  simple('resolve', 'Close items that were dealt with elsewhere.'),
  simple('discard', 'Close items that are not wanted. They can be restored.'),
  simple('restore', 'Open again what was resolved or discarded.'),
  command({
    name: 'review erase',
    summary: 'Take everything personal out of messages, for good.',
    usage: 'review erase <id>...',
    about:
      'Payload, headers, ordering key, attempts, the texts of failures and the query string of the destination go, in every ' +
      'task, item and audit event of the message. Number, lane, the rest of the destination, message id, reason and times ' +
      'stay. It cannot be undone, so it wants --yes, and where tokens are used one with the role admin. It is refused while ' +
      'the message is on its way. What it cannot reach, such as brokers, logs and backups, it lists.',
    options: {
      yes: { kind: 'flag', summary: 'It is meant: there is no way back.' },
      ...connection,
    },
    examples: [
      'redrive review list --message 7d9f7b57-5c8b-4f0c-9a3e-0b6c0f6f3c11 --state all # find its items',
      'redrive review erase 42 --yes # any one of them will do',
    ],
    async run({ positionals, options, json }, io) {
      if (!options.yes)
        throw usageError('What is erased is gone for good. Add --yes if it is meant.');
      return each(positionals, 'erase', {}, clientOf(options, io), outputOf(io, json), io, json);
    },
  }),
];

function simple(
  action: 'resolve' | 'discard' | 'restore',
  summary: string,
): Command<typeof connection> {
  return command({
    name: `review ${action}`,
    summary,
    usage: `review ${action} <id>...`,
    options: connection,
    examples: [`redrive review ${action} 42 43`],
    run: ({ positionals, options, json }, io) =>
      each(positionals, action, {}, clientOf(options, io), outputOf(io, json), io, json),
  });
}

const done = {
  replay: 'is sent again',
  resolve: 'is resolved',
  discard: 'is discarded; redrive review restore brings it back',
  restore: 'is open again',
  erase: 'is erased',
};

/** One by one: one that is refused holds up no other. */
async function each(
  texts: readonly string[],
  action: keyof typeof done,
  body: object,
  client: Client,
  output: Output,
  io: Io,
  json: boolean,
): Promise<number> {
  const ids = texts.map((text) => readId(text, 'an item'));
  let refused = 0;
  for (const id of ids) {
    try {
      const path = `/api/v1/review/${id}/${action}`;
      const answer = await client.post(path, body);
      output.data(client.as(isItemDetail, answer));
      output.say(`${output.paint('green', '✔')} ${id} ${done[action]}.`);
      if (action === 'erase') output.say(...notReachedLines(client.as(isErasedItem, answer)));
    } catch (error) {
      if (!(error instanceof ProblemError) || error.exit !== exits.failed) throw error;
      refused += 1;
      output.data({ id, error: error.problem });
      if (!json) io.err(`${id}: ${error.message}\n`);
    }
  }
  return refused > 0 ? exits.failed : exits.ok;
}

function notReachedLines({ not_reached: places = [] }: Partial<ErasedItem>): string[] {
  if (places.length === 0) return [];
  const lines = places.map(({ why, todo }) => `  - ${shown(why)} ${shown(todo)}`);
  return ['Something of it may still be in these places:', ...lines];
}

/** A list for a table; for programs each one as it comes. */
function itemRow(item: ItemView, nowMs: number) {
  return [
    String(item.id),
    shown(item.reason),
    destinationText(item.destination),
    errorText(item.error),
    relative(item.last_seen_at, nowMs),
    String(item.occurrences),
    stateCell(item.state),
    shown(item.message_id),
    absolute(item.last_seen_at),
  ];
}

function groupRow(group: GroupView, nowMs: number) {
  return [
    shown(group.fingerprint),
    String(group.open),
    shown(group.lane),
    group.error?.code === group.reason
      ? errorText(group.error)
      : `${shown(group.reason)} ${errorText(group.error)}`,
    relative(group.last_seen_at, nowMs),
    textOf(group.owner) ?? '',
    textOf(group.note) ?? '',
  ];
}
