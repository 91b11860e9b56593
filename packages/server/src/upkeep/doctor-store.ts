/** A look at the store: PostgreSQL, or the file. Nothing is changed. */
import { databaseFile } from '../settings/data-dir.ts';
import { hiddenUrl } from '../settings/hide.ts';
import type { Settings } from '../settings/settings.ts';
import { examineFile, leftInFile } from './doctor-file.ts';
import { clockSkew } from './doctor-host.ts';
import { type Finding, findingsAbout, sizeOf } from './finding.ts';

const finding = findingsAbout('database');

type StoreSettings = Pick<Settings, 'databaseUrl' | 'dataDir'>;

export async function examineStore(settings: StoreSettings): Promise<Finding[]> {
  const { databaseUrl } = settings;
  const file = databaseFile(settings);
  if (databaseUrl === undefined) return examineFile(file);
  return [...(await examineDatabase(databaseUrl)), ...(await leftInFile(file))];
}

async function examineDatabase(url: string): Promise<Finding[]> {
  const { adviceOn, examine } = await import('@redrive/engine/postgres');
  const at = hiddenUrl(url);
  let findings: Awaited<ReturnType<typeof examine>>;
  try {
    findings = await examine(url);
  } catch (error) {
    return [notReached(at, error)];
  }
  const { schema, server, clock, connections, tables } = findings;
  const bytes = tables.reduce(
    (sum, { tableBytes, indexBytes }) => sum + tableBytes + indexBytes,
    0,
  );
  // What the service itself does when it starts is nothing that somebody has to see to.
  const isOld = schema.version === undefined || schema.version < schema.known;
  const rest = isOld
    ? { ...findings, schema: { ...schema, version: schema.known, oldest: 0 } }
    : findings;
  const known = { ...rest, clock: { aheadMs: 0, uncertaintyMs: 0 } };
  // As every server is set up: good to know, and nothing to warn of each time.
  const settings = { ...known.settings, idle_in_transaction_session_timeout: '1min' };
  const warnings = new Set(adviceOn({ ...known, settings }).map(({ text }) => text));
  return [
    ...adviceOn(known).map(({ level, text }) =>
      finding(level === 'problem' ? 'broken' : warnings.has(text) ? 'warning' : 'note', text),
    ),
    ...(isOld
      ? [
          finding(
            'note',
            oldSchema(schema),
            'The next redrive serve sees to it, or redrive migrate.',
          ),
        ]
      : []),
    finding(
      'fine',
      `PostgreSQL ${server.version} at ${at} answers: ${sizeOf(bytes)} in ${tables.length} tables, ` +
        `${connections.used} of ${connections.max} connections in use.`,
    ),
    clockSkew(`the database at ${at}`, clock.aheadMs),
  ];
}

function oldSchema({ version, known }: { version?: number; known: number }): string {
  if (version === undefined) return 'There are no tables yet.';
  return version === 0
    ? 'A change of the tables was begun and not finished.'
    : `The tables have schema ${version}; this program wants ${known}.`;
}

/** By the code of the server: it answers, so that nothing about the way there has to be looked at. */
const refusals: ReadonlyMap<string, { what: string; advice: string }> = new Map([
  ['28P01', { what: 'refuses the user or the password.', advice: 'Check both in DATABASE_URL.' }],
  [
    '28000',
    {
      what: 'refuses the user.',
      advice: 'Check the user in DATABASE_URL, and pg_hba.conf of the server.',
    },
  ],
  [
    '3D000',
    { what: 'has no such database.', advice: 'Create it, or correct its name in DATABASE_URL.' },
  ],
]);

function codeUnder(error: unknown): string | undefined {
  const { code, cause } = Object(error) as { code?: unknown; cause?: unknown };
  if (typeof code === 'string' && refusals.has(code)) return code;
  return cause === undefined ? undefined : codeUnder(cause);
}

function notReached(at: string, error: unknown): Finding {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const refused = refusals.get(codeUnder(error) ?? '');
  if (refused) return finding('broken', `PostgreSQL at ${at} ${refused.what}`, refused.advice);
  const why = typeof message === 'string' ? message : String(code);
  return finding(
    'broken',
    `PostgreSQL at ${at}: ${why}`,
    'Is it running, and is DATABASE_URL right (host, port, user, password, database)? Try the same with psql.',
  );
}
