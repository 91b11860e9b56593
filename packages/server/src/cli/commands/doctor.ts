/** `redrive doctor`: what is not well, and what to do about it. */
import type { ServerAnswer } from '../../upkeep/doctor.ts';
import type { Finding, Level } from '../../upkeep/finding.ts';
import { isLane, isPageOf } from '../answers.ts';
import { type Client, clientOf, connection, type Query } from '../client.ts';
import { command, CommandError, exits } from '../command.ts';
import { type Output, outputOf, plural } from '../terminal/output.ts';
import { shown } from '../terminal/safe-text.ts';
import { storeInput, storeOptions } from '../store-options.ts';
import { type Style, wrap } from '../terminal/terminal.ts';
import type { LaneView } from '../wire.ts';

const signs: Readonly<Record<Level, { sign: string; style: Style }>> = {
  broken: { sign: '✗', style: 'red' },
  warning: { sign: '!', style: 'yellow' },
  note: { sign: '·', style: 'dim' },
  fine: { sign: '✔', style: 'green' },
};

export const commands = [
  command({
    name: 'doctor',
    summary: 'Look at configuration, database, broker, clock, disk and server, and say what to do.',
    usage: 'doctor',
    about:
      'Reads the same configuration as redrive serve, from here. Nothing is changed. The worst comes first; exit code 1 if ' +
      'something is broken.',
    options: {
      ...connection,
      timeout: { ...connection.timeout, default: 5000 },
      ...storeOptions,
    },
    examples: [
      'redrive doctor # with the configuration of this folder',
      'redrive doctor --json | jq -c \'.findings[] | select(.level != "fine")\' # for programs',
    ],
    async run({ options, json }, io) {
      const { readAll } = await import('../settings.ts');
      const { examineEverything } = await import('../../upkeep/doctor.ts');
      const reading = await readAll(io, storeInput(options));
      const said = options.url ?? (io.env['REDRIVE_URL'] || undefined);
      const url = said ?? (reading.ok ? ownUrl(reading.settings) : undefined);
      const client = clientOf({ ...options, url }, io);
      const findings = await examineEverything({
        reading,
        serverUrl: client.url,
        askServer: () => askServer(client),
      });
      const output = outputOf(io, json);
      const broken = findings.filter(({ level }) => level === 'broken').length;
      output.data({ ok: broken === 0, findings });
      output.say(
        ...findings.flatMap((finding) => findingLines(finding, output)),
        '',
        verdict(findings, output),
      );
      return broken > 0 ? exits.failed : exits.ok;
    },
  }),
];

/** Where a server with these settings listens, seen from its own machine. */
function ownUrl({ host, port }: { host: string; port: number }): string {
  const everywhere = host === '0.0.0.0' || host === '::';
  const name = everywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

async function askServer(client: Client): Promise<ServerAnswer> {
  try {
    const { ready, checks } = await client.ready();
    const clockAheadMs = client.nowMs() - Date.now();
    const [unserved, blocked, paused] = await Promise.all([
      lanesOf(client, { state: 'NO_HANDLER' }),
      lanesOf(client, { blocked: 'true' }),
      lanesOf(client, { state: 'paused' }),
    ]);
    return {
      type: 'answers',
      ready,
      checks,
      clockAheadMs,
      unserved: unserved.map(({ lane, next_in_ms }) => {
        return { lane, isDue: next_in_ms !== undefined && next_in_ms <= 0 };
      }),
      blocked: blocked.map(({ lane, blocked: tasks = 0, blocked_by: items = 0 }) => {
        return { lane, tasks, items };
      }),
      paused: paused
        .filter(({ next_in_ms: next }) => next !== undefined && next <= 0)
        .map(({ lane, paused_by: by }) => ({ lane, ...(by === undefined ? {} : { by }) })),
    };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return { type: 'away', why: error.code };
  }
}

/** Those that a filter finds; none where the server does not say. */
async function lanesOf(client: Client, filter: Query): Promise<readonly LaneView[]> {
  try {
    const { items } = client.as(isPageOf(isLane), await client.get('/api/v1/lanes', filter));
    return items;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return [];
  }
}

function findingLines({ about, level, what, advice }: Finding, { paint, width }: Output): string[] {
  const { sign, style } = signs[level];
  const head = `${paint(style, sign)} ${paint('bold', about.padEnd(13))} `;
  const indent = ' '.repeat(16);
  return [
    ...wrap(head + shown(what), width, indent),
    ...(advice === undefined
      ? []
      : wrap(`${indent}${paint('cyan', '→')} ${shown(advice)}`, width, `${indent}  `)),
  ];
}

function verdict(findings: readonly Finding[], { paint }: Output): string {
  const count = (wanted: Level): number => findings.filter(({ level }) => level === wanted).length;
  if (count('broken') > 0) {
    return paint('red', `${plural(count('broken'), 'thing is', 'things are')} broken.`);
  }
  if (count('warning') > 0)
    return paint('yellow', `It works, with ${plural(count('warning'), 'warning')}.`);
  return paint('green', 'All is well.');
}
