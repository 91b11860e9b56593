/** `redrive audit`: what was decided, and whether it comes out the same again. */
import { type AuditEvent, replayAudit } from 'redrive';
import { isAuditEntry } from '../answers.ts';
import { auditOfServer, auditOfText, policiesOf } from '../audit/audit-source.ts';
import { replayLines } from '../audit/audit-report.ts';
import { clientOf, connection } from '../client.ts';
import { command, type Command, exits } from '../command.ts';
import { readTime } from '../inputs.ts';
import { limit, printList } from '../tasks/listing.ts';
import { absolute, type Column, outputOf, relative } from '../terminal/output.ts';
import { chunksOf } from '../terminal/lines.ts';
import { shown } from '../terminal/safe-text.ts';
import { commands as analysis } from './audit-analysis.ts';

const columns: readonly Column[] = [
  { title: 'WHEN' },
  { title: 'EVENT' },
  { title: 'OPERATION', least: 8, good: 24 },
  { title: 'ATTEMPT', right: true },
  { title: 'WHAT', least: 16, good: 36 },
  { title: 'MESSAGE ID', optional: true },
  { title: 'AT (UTC)', optional: true },
];

const range = {
  from: { kind: 'text', value: 'time', summary: 'Then or later: 2030-01-31T12:00:00Z.' },
  to: { kind: 'text', value: 'time', summary: 'Before then.' },
} as const;

export const commands: readonly Command[] = [
  command({
    name: 'audit list',
    summary: 'List the events of the audit trail, the newest first.',
    usage: 'audit list',
    options: {
      type: {
        kind: 'text',
        value: 'type',
        summary: 'Only these: retry_attempt, retry_exhausted, ...',
      },
      message: { kind: 'text', value: 'uuid', summary: 'Only those of this message.' },
      ...range,
      limit: { ...limit, max: 1_000_000 },
      ...connection,
    },
    examples: [
      'redrive audit list --message 7d9f7b57-5c8b-4f0c-9a3e-0b6c0f6f3c11 # what was decided about one message',
      'redrive audit list --limit 1000000 --json > trail.jsonl # to keep',
    ],
    async run({ options, json }, io) {
      const { type, message, from, to } = options;
      const times = { from: readTime('--from', from), to: readTime('--to', to) };
      await printList(clientOf(options, io), outputOf(io, json), json, {
        isOne: isAuditEntry,
        path: '/api/v1/audit',
        query: { type, message_id: message, ...times },
        limit: options.limit,
        columns,
        rowOf: ({ event }, nowMs) => rowOf(event as AuditEvent, nowMs),
        none: 'There are none. Is the audit trail on (REDRIVE_AUDIT)?',
        dataOf: ({ event }) => event,
      });
      return exits.ok;
    },
  }),
  command({
    name: 'audit verify',
    summary: 'Make every decision of a trail again, and see that it comes out the same.',
    usage: 'audit verify [file]',
    about:
      'The trail is one JSON object per line: a file of the jsonl sink, what redrive audit list --json has written, or - for ' +
      'the standard input. Without one, that of the server is read.\n\n' +
      'Exit code 1 if a decision comes out otherwise, or if a policy is not what its fingerprint says. What is missing or ' +
      'cannot be read is told, and fails only with --strict.',
    options: {
      strict: {
        kind: 'flag',
        summary: 'Also fail for gaps, unknown policies and what cannot be read.',
      },
      ...range,
      limit: {
        ...limit,
        max: 1_000_000,
        default: 100_000,
        summary: 'At most so many, of a server.',
      },
      ...connection,
    },
    examples: [
      'redrive audit verify # the trail of the server',
      'redrive audit verify audit.jsonl # a file',
      'zcat audit-*.jsonl.gz | redrive audit verify - --strict # many files, and nothing may be missing',
    ],
    async run({ positionals, options, json }, io) {
      const output = outputOf(io, json);
      const [file] = positionals;
      const replay =
        file === undefined
          ? await ofServer()
          : await replayAudit(auditOfText(await chunksOf(file, io)));
      const isWrong = replay.different > 0 || replay.wrongPolicies.length > 0;
      const isHoled =
        replay.missing + replay.unreadable + replay.unknownPolicy + replay.dropped > 0;
      output.data(replay);
      output.say(...replayLines(replay, output));
      return isWrong || (options.strict && isHoled) ? exits.failed : exits.ok;

      async function ofServer() {
        const client = clientOf(options, io);
        const query = { from: readTime('--from', options.from), to: readTime('--to', options.to) };
        const policies = await policiesOf(client);
        const { events, isAll } = await auditOfServer(client, query, options.limit);
        if (!isAll) output.say(`These are the newest ${options.limit}; --limit takes more.`, '');
        return replayAudit(events, { policies });
      }
    },
  }),
  ...analysis,
];

function rowOf(event: AuditEvent, nowMs: number) {
  const attempt = event['attempt_number'] ?? event['total_attempts'] ?? '';
  const key = event.redrive?.key ?? event['message_id'] ?? event['correlation_id'];
  const at = textOf(event.timestamp);
  return [
    relative(at, nowMs),
    shown(textOf(event.event_type)),
    shown(textOf(event['operation'] ?? event['lane'])),
    shown(textOf(attempt)),
    shown(whatOf(event)),
    shown(textOf(key)),
    absolute(at),
  ];
}

function whatOf(event: AuditEvent): string {
  const delay = event['delay_seconds'];
  const type = event['exception_type'] ?? event['final_exception_type'];
  const message = event['exception_message'] ?? event['final_exception_message'];
  const about = ['item', 'job', 'group'].flatMap((name) =>
    event[name] == null ? [] : [`${name} ${textOf(event[name])}`],
  );
  return [
    event['action'],
    ...about,
    event['state'],
    event['reason'] ?? event['why'],
    typeof delay === 'number' ? `again in ${delay} s` : undefined,
    type,
    message,
    event['by'] == null ? undefined : `by ${textOf(event['by'])}`,
  ]
    .filter((part) => part != null && part !== '')
    .map(textOf)
    .join(', ');
}

function textOf(value: unknown): string {
  if (value == null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
