/** `redrive submit`: hands in one task, or a file of them. */
import { isReceipt } from '../answers.ts';
import { type Client, clientOf, connection } from '../client.ts';
import { command, exits, type Io } from '../command.ts';
import { messageOf, readHeaders, readJson, readTime, usageError } from '../inputs.ts';
import { chunksOf, linesOf } from '../terminal/lines.ts';
import { moment, type Output, outputOf, plural } from '../terminal/output.ts';
import { LiveArea } from '../terminal/progress.ts';
import { shown } from '../terminal/safe-text.ts';
import { MAX_LINE_BYTES, type Rejection, submitMany, type Tally } from '../tasks/submit-many.ts';
import { count } from '../terminal/terminal.ts';

const classes = ['transient', 'business', 'technical', 'unknown'] as const;

export const commands = [
  command({
    name: 'submit',
    summary: 'Hand in a task, or a file of them.',
    usage: 'submit [destination] [payload]',
    about:
      'The destination is a URL or a queue: https://api.example.com/orders, queue:orders. The payload is JSON or any other ' +
      'text, @file for what is in a file, and the standard input where there is none.\n\n' +
      'With --file, each line is one task, as the API takes it: {"destination": "queue:orders", "payload": {}}. With a ' +
      'destination besides, each line is a payload for there. A file that was sent in part can be sent again: with the same ' +
      '--idempotency-key nothing is taken twice.\n\n' +
      'Exit code 1 if anything was rejected.',
    options: {
      file: {
        kind: 'text',
        value: 'file',
        summary: 'Many at once: one JSON per line; - is the standard input.',
      },
      raw: { kind: 'flag', summary: 'The payload as bytes, whatever it looks like.' },
      id: { kind: 'text', value: 'uuid', summary: 'The message id; made up unless given.' },
      'idempotency-key': {
        kind: 'text',
        value: 'text',
        summary: 'Makes the id: the same key again is the same task.',
      },
      header: {
        kind: 'texts',
        value: 'name: value',
        summary: 'A header that goes with it; may be given again.',
      },
      policy: {
        kind: 'text',
        value: 'policy',
        summary: 'The name of a policy of the server, or a policy in JSON.',
      },
      'max-retries': {
        kind: 'number',
        value: 'n',
        min: 0,
        max: 1_000_000,
        whole: true,
        summary: 'How often it is tried again.',
      },
      in: { kind: 'duration', value: 'time', summary: 'Not before this time has passed.' },
      delay: { kind: 'duration', value: 'time', summary: 'The same as --in.' },
      'due-at': { kind: 'text', value: 'time', summary: 'Not before then: 2030-01-31T12:00:00Z.' },
      'expires-in': { kind: 'duration', value: 'time', summary: 'Not after this time has passed.' },
      'ordering-key': {
        kind: 'text',
        value: 'text',
        summary: 'Tasks of one key are delivered one after the other.',
      },
      'on-dead': {
        kind: 'choice',
        of: ['block', 'release'],
        summary: 'Whether those behind it wait while it lies in the inbox; they do unless told.',
      },
      'retry-count': {
        kind: 'number',
        value: 'n',
        min: 0,
        max: 1_000_000,
        whole: true,
        summary: 'It failed elsewhere: how often it had been tried again by then.',
      },
      error: { kind: 'text', value: 'text', summary: 'How it failed; with --retry-count.' },
      class: {
        kind: 'choice',
        of: classes,
        summary: 'What kind of failure that was; with --retry-count. transient unless given.',
      },
      ...connection,
    },
    examples: [
      `redrive submit https://api.example.com/orders '{"order": 4711}' # as soon as possible`,
      'redrive submit queue:orders @order.json --in 10m # in ten minutes',
      'redrive submit queue:orders --file orders.ndjson # each line a payload',
      'redrive submit --file tasks.ndjson --idempotency-key import-7 # each line a task; again takes nothing twice',
      `redrive submit queue:orders '{"order": 4711}' --retry-count 0 --error 'connect ECONNREFUSED' # it failed once already`,
    ],
    async run({ positionals, options, json }, io) {
      const client = clientOf(options, io);
      const output = outputOf(io, json);
      const fields = fieldsOf(options);
      const [destination, payload] = positionals;
      if (options.file !== undefined) {
        if (payload !== undefined || options.id !== undefined) {
          throw usageError(
            'With --file the payloads and ids are in the file: leave them out here.',
          );
        }
        const target = destination === undefined ? {} : { destination };
        const key = options['idempotency-key'];
        return many(client, output, io, options.file, {
          defaults: fields,
          ...target,
          ...(key === undefined ? {} : { key }),
        });
      }
      if (destination === undefined) {
        throw usageError('Where does it go? redrive submit <destination> [payload], or --file.');
      }
      const body = {
        ...fields,
        ...(options.id === undefined ? {} : { message_id: options.id }),
        destination,
        ...(await messageOf(payload, options.raw, io)),
      };
      return one(client, output, body, options['idempotency-key']);
    },
  }),
];

async function one(
  client: Client,
  output: Output,
  body: object,
  key: string | undefined,
): Promise<number> {
  const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
  const receipt = client.as(isReceipt, await client.post('/api/v1/retries', body, headers));
  output.data(receipt);
  const { message_id: id, due_at: due, status_of_request: result, status } = receipt;
  const { paint } = output;
  const told: Record<string, string> = {
    duplicate: `${paint('yellow', 'duplicate')}  ${shown(id)}: it is known, and ${shown(status)}.`,
    failed: `${paint('red', 'failed')}  ${shown(id)}: it is in the inbox. redrive review list shows it.`,
  };
  const accepted = `${paint('green', 'accepted')}  ${shown(id)}${due === undefined ? '' : `, due ${moment(due, client.nowMs())}`}`;
  output.say(told[result] ?? accepted, `redrive show ${shown(id)} follows it.`);
  if (receipt.warning != null) output.say(paint('yellow', shown(receipt.warning)));
  return exits.ok;
}

const LISTED = 20;

async function many(
  client: Client,
  output: Output,
  io: Io,
  path: string,
  options: { defaults: Record<string, unknown>; destination?: string; key?: string },
): Promise<number> {
  const area = output.live ? new LiveArea((text) => io.out(text)) : undefined;
  let listed = 0;
  const result = await submitMany(linesOf(await chunksOf(path, io), MAX_LINE_BYTES), {
    client,
    ...options,
    onRejected(rejection) {
      output.data({ result: 'rejected', ...rejection });
      listed += 1;
      if (listed > LISTED) return;
      area?.clear();
      io.err(`${rejectionInWords(rejection)}\n`);
      if (listed === LISTED) io.err('  further ones are only counted; --json tells all of them\n');
    },
    onProgress(tally, lines) {
      area?.draw([tallyInWords(tally, lines, output)]);
    },
  });
  area?.clear();
  area?.end();
  const { lines, ...tally } = result;
  output.data({ result: 'total', lines, ...tally });
  output.say(tallyInWords(tally, lines, output));
  return tally.rejected > 0 ? exits.failed : exits.ok;
}

function tallyInWords(tally: Tally, lines: number, { paint }: Output): string {
  const { accepted, duplicates, failed, rejected } = tally;
  return [
    `${plural(lines, 'line')}: ${paint('green', `${count(accepted)} accepted`)}`,
    plural(duplicates, 'duplicate'),
    ...(failed > 0 ? [paint('yellow', `${count(failed)} straight into the inbox`)] : []),
    rejected > 0 ? paint('red', `${count(rejected)} rejected`) : '0 rejected',
  ].join(', ');
}

function rejectionInWords({ line, code, path = '', message = '' }: Rejection): string {
  const where = path === '' ? '' : ` ${path}:`;
  return shown(`line ${line}: ${code}${where} ${message}`.trimEnd());
}

/** What is said of every task that is handed in here. */
function fieldsOf(options: {
  header: readonly string[];
  policy: string | undefined;
  'max-retries': number | undefined;
  in: number | undefined;
  delay: number | undefined;
  'due-at': string | undefined;
  'expires-in': number | undefined;
  'ordering-key': string | undefined;
  'on-dead': 'block' | 'release' | undefined;
  'retry-count': number | undefined;
  error: string | undefined;
  class: (typeof classes)[number] | undefined;
}): Record<string, unknown> {
  const {
    delay,
    in: inMs = delay,
    'due-at': at,
    'expires-in': expiresMs,
    policy,
    header,
  } = options;
  if (inMs !== undefined && at !== undefined) throw usageError('Either --in or --due-at.');
  if (delay !== undefined && options.in !== undefined) {
    throw usageError('--delay is the same as --in: give one of them.');
  }
  const fields = {
    headers: readHeaders(header),
    policy: policy?.trimStart().startsWith('{') === true ? readJson('--policy', policy) : policy,
    max_retries: options['max-retries'],
    due_at:
      inMs === undefined ? readTime('--due-at', at) : new Date(Date.now() + inMs).toISOString(),
    expires_at:
      expiresMs === undefined ? undefined : new Date(Date.now() + expiresMs).toISOString(),
    ordering_key: options['ordering-key'],
    on_dead: options['on-dead'],
    retry_count: options['retry-count'],
    error_reason: options.error,
    classification: options.class?.toUpperCase(),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
