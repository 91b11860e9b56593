/** `redrive audit stats` and `redrive audit suggest`: what retries cost and bring, and which policy would fit. */
import { type AuditStats, auditStats } from 'redrive';
import { auditStatsView } from '../../http/audit-stats-view.ts';
import { eventsOfServer, auditOfText, policiesOf } from '../audit/audit-source.ts';
import { statsLines } from '../audit/audit-stats.ts';
import { suggestionData, suggestionLines, suggestionOf } from '../audit/audit-suggest.ts';
import { clientOf, connection } from '../client.ts';
import { command, type Command, CommandError, exits, type Io } from '../command.ts';
import { readTime } from '../inputs.ts';
import { chunksOf } from '../terminal/lines.ts';
import { limit } from '../tasks/listing.ts';
import { outputOf } from '../terminal/output.ts';
import { shown } from '../terminal/safe-text.ts';

const trail =
  'The trail is one JSON object per line: a file of the jsonl sink, what redrive audit list --json has written, or - for ' +
  'the standard input. Without one, that of the server is read, the newest events first.';

const options = {
  from: { kind: 'text', value: 'time', summary: 'Then or later: 2030-01-31T12:00:00Z.' },
  to: { kind: 'text', value: 'time', summary: 'Before then.' },
  by: {
    kind: 'choice',
    of: ['category', 'operation'],
    default: 'category',
    summary: 'What events are grouped by. The operation of a task is its lane.',
  },
  events: {
    ...limit,
    max: 10_000_000,
    default: 100_000,
    summary: 'At most so many events, of a server.',
  },
  ...connection,
} as const;

export const commands: readonly Command[] = [
  command({
    name: 'audit stats',
    summary: 'Measure retries per category: attempts, success, rates, errors.',
    usage: 'audit stats [file]',
    about: `${trail}\n\nMemory is bounded, whatever the length of a file.`,
    options: { ...options, limit: { ...limit, max: 1000, summary: 'Categories at most.' } },
    examples: [
      'redrive audit stats # the trail of the server, per category',
      'redrive audit stats --by operation --from 2030-01-31T00:00:00Z # per lane, since then',
      'zcat audit-*.jsonl.gz | redrive audit stats - --json # files, for a program',
    ],
    async run({ positionals, options: given, json }, io) {
      const output = outputOf(io, json);
      const { stats, isComplete } = await measured(positionals[0], given, io);
      output.data(auditStatsView(stats, isComplete, given.limit));
      if (!isComplete) output.say(newestOnly(given.events), '');
      output.say(...statsLines(stats, given.limit, output));
      return exits.ok;
    },
  }),
  command({
    name: 'audit suggest',
    summary: 'Suggest a policy per category, from what was measured.',
    usage: 'audit suggest [file]',
    about:
      `${trail}\n\n` +
      'A suggestion comes from which attempt still helps, and from how long work waited when it recovered. It needs 30 first ' +
      'retries of a category. Both policies are played in the simulator, in an outage as long as nine of ten that the ' +
      'category recovered from. Nothing is changed.',
    options: {
      ...options,
      category: { kind: 'text', value: 'name', summary: 'Only this one.' },
      limit: { ...limit, max: 1000, default: 10, summary: 'Categories at most.' },
    },
    examples: [
      'redrive audit suggest # from the trail of the server',
      'redrive audit suggest audit.jsonl --category RETRY_API_REQUEST # one category of a file',
    ],
    async run({ positionals, options: given, json }, io) {
      const output = outputOf(io, json);
      const { stats, isComplete } = await measured(positionals[0], given, io);
      const { category } = given;
      const found = stats.categories.filter(
        (one) => category === undefined || one.category === category,
      );
      if (category !== undefined && found.length === 0) throw unknownCategory(category, stats);
      if (!isComplete) output.say(newestOnly(given.events), '');
      if (found.length === 0) output.say('There is nothing about attempts in it.');
      for (const [i, one] of found.slice(0, given.limit).entries()) {
        const suggestion = suggestionOf(one);
        output.data(suggestionData(suggestion));
        output.say(...(i === 0 ? [] : ['']), ...suggestionLines(suggestion, output));
      }
      return exits.ok;
    },
  }),
];

interface Asked {
  from: string | undefined;
  to: string | undefined;
  by: 'category' | 'operation';
  events: number;
  url: string | undefined;
  token: string | undefined;
  timeout: number;
}

async function measured(
  file: string | undefined,
  given: Asked,
  io: Io,
): Promise<{ stats: AuditStats; isComplete: boolean }> {
  const from = readTime('--from', given.from);
  const to = readTime('--to', given.to);
  const asked = {
    by: given.by,
    ...(from === undefined ? {} : { fromMs: Date.parse(from) }),
    ...(to === undefined ? {} : { toMs: Date.parse(to) }),
  };
  if (file !== undefined) {
    const stats = await auditStats(auditOfText(await chunksOf(file, io)), asked);
    return { stats, isComplete: true };
  }
  const client = clientOf(given, io);
  const policies = await policiesOf(client);
  const reading = eventsOfServer(client, { from, to }, given.events);
  const stats = await auditStats(reading.events, { ...asked, policies });
  return { stats, isComplete: reading.isAll() };
}

function newestOnly(events: number): string {
  return `These are the newest ${events} events; --events takes more.`;
}

function unknownCategory(category: string, { categories }: AuditStats): CommandError {
  const known = categories.slice(0, 10).map((one) => shown(one.category));
  const has = known.length > 0 ? `It has ${known.join(', ')}.` : 'It has none.';
  return new CommandError(`The trail has no category '${shown(category)}'. ${has}`, {
    code: 'UNKNOWN_CATEGORY',
  });
}
