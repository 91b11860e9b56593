import type { Findings, Holder, IndexFinding, Setting, TableFinding } from './findings.ts';
import { quoteName } from '../names.ts';

/** `problem`: it does not work, or may lose something. `hint`: it could be better. */
export interface Advice {
  level: 'problem' | 'hint';
  text: string;
}

/** What to do about what was found, problems first. Pure. */
export function adviceOn(findings: Findings): Advice[] {
  const all = [
    ...onServer(findings),
    ...onSchema(findings),
    ...onSettings(findings),
    ...onClock(findings),
    ...onConnections(findings),
    ...onPooler(findings),
    ...onVacuum(findings),
    ...findings.indexes.flatMap((index) => onIndex(index, findings)),
  ];
  return [...all.filter(isProblem), ...all.filter((one) => !isProblem(one))];
}

const OLDEST_SERVER = 130_000;
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const MIB = 1024 * 1024;

/** Whoever has a transaction open for longer is in the way. */
const LONG_MS = 5 * MINUTE_MS;
const MANY_TRANSACTIONS = 1_000_000;
const FEW_DEAD_ROWS = 20_000;
const LARGE_BYTES = 64 * MIB;

function onServer({ server }: Findings): Advice[] {
  return [
    ...(server.number < OLDEST_SERVER
      ? [problem(`PostgreSQL 13 or later is needed; this is ${server.version}.`)]
      : []),
    ...(server.encoding === 'UTF8'
      ? []
      : [problem(`The database has the encoding ${server.encoding}. Make one with UTF8.`)]),
    ...(server.isStandby
      ? [problem('This server is a standby and takes no writes. Point the URL at the primary.')]
      : []),
  ];
}

function onSchema({ schema }: Findings): Advice[] {
  const { name, version, oldest = 0, known } = schema;
  const place = quoteName(name);
  if (version === undefined) {
    return [
      problem(`The schema ${place} has no tables of Redrive. Migrate, or name another schema.`),
    ];
  }
  if (version === 0) {
    return [
      problem(`A migration of the schema ${place} was not finished. Migrate again: it goes on.`),
    ];
  }
  if (oldest > known) {
    return [
      problem(
        `The tables in ${place} need a Redrive that knows schema ${oldest}; this one knows ${known}. Update this program.`,
      ),
    ];
  }
  if (version < known) {
    return [
      problem(
        `The tables in ${place} have schema ${version}; this program wants ${known}. Migrate.`,
      ),
    ];
  }
  return [];
}

interface WrongSetting {
  name: Setting;
  wrong: string;
  level: Advice['level'];
  why: string;
}

const wrongSettings: readonly WrongSetting[] = [
  {
    name: 'fsync',
    wrong: 'off',
    level: 'problem',
    why: 'A crash of the machine may destroy the database. Turn it on.',
  },
  {
    name: 'full_page_writes',
    wrong: 'off',
    level: 'problem',
    why: 'A crash of the machine may damage pages for good. Turn it on.',
  },
  {
    name: 'synchronous_commit',
    wrong: 'off',
    level: 'problem',
    why: 'A crash of the server may lose what was already accepted. Turn it on for this role.',
  },
  {
    name: 'default_transaction_read_only',
    wrong: 'on',
    level: 'problem',
    why: 'Nothing can be stored. Turn it off for this role.',
  },
  {
    name: 'autovacuum',
    wrong: 'off',
    level: 'problem',
    why: 'Nobody removes dead rows, and claims get slower and slower. Turn it on.',
  },
  {
    name: 'track_counts',
    wrong: 'off',
    level: 'problem',
    why: 'Autovacuum does not know where to go without it. Turn it on.',
  },
  {
    name: 'idle_in_transaction_session_timeout',
    wrong: '0',
    level: 'hint',
    why: 'A forgotten transaction holds back vacuum for as long as it likes. Set a limit for those who share the database.',
  },
];

function onSettings({ settings }: Findings): Advice[] {
  return wrongSettings
    .filter(({ name, wrong }) => settings[name] === wrong)
    .map(({ name, wrong, level, why }) => ({ level, text: `${name} is ${wrong}. ${why}` }));
}

function onClock({ clock: { aheadMs, uncertaintyMs } }: Findings): Advice[] {
  const offMs = Math.abs(aheadMs) - uncertaintyMs;
  if (offMs < SECOND_MS) return [];
  const way = aheadMs > 0 ? 'ahead of' : 'behind';
  return [
    hint(
      `The server's clock is ${duration(Math.abs(aheadMs))} ${way} this machine's. The server's is the one that counts, so a due time or an expiry taken from this machine's is off by as much. Synchronise both.`,
    ),
  ];
}

function onConnections({ connections: { used, max, reserved } }: Findings): Advice[] {
  const free = max - reserved - used;
  if (free <= 0) {
    return [
      problem(
        `All of the server's ${max} connections are in use. Raise max_connections, lower maxConnections, or put a pooler between.`,
      ),
    ];
  }
  if (free * 5 > max) return [];
  return [
    hint(
      `${used} of the server's ${max} connections are in use, and ${reserved} are reserved. Every instance of Redrive may take 9, and 2 more while it migrates.`,
    ),
  ];
}

function onPooler({ pooler, settings }: Findings): Advice[] {
  if (!pooler.isBetween) return [];
  return [
    ...(pooler.hasWayAround
      ? []
      : [
          hint(
            'A pooler stands between. Give a listenUrl that leads around it: without one, news of other instances comes by polling only.',
          ),
        ]),
    ...(settings.statement_timeout === '0'
      ? [
          hint(
            'A pooler stands between, which may refuse our limit for statements, and the role has none of its own: ALTER ROLE ... SET statement_timeout.',
          ),
        ]
      : []),
  ];
}

function onVacuum({ tables, holders, seesSessions }: Findings): Advice[] {
  const swollen = tables.filter(
    ({ rows, deadRows }) => deadRows > FEW_DEAD_ROWS && deadRows * 2 > rows,
  );
  return [
    ...holders.filter(isInTheWay).map(onHolder),
    ...swollen.map(onSwollen),
    ...(seesSessions
      ? []
      : [
          hint(
            'This role does not see the sessions of others, and so not who holds back vacuum: GRANT pg_read_all_stats to it.',
          ),
        ]),
  ];
}

function isInTheWay({ ageMs = 0, transactions }: Holder): boolean {
  return ageMs > LONG_MS || transactions > MANY_TRANSACTIONS;
}

function onHolder({ kind, name, pid, state, ageMs, transactions }: Holder): Advice {
  const quoted = `'${name.replaceAll("'", "''")}'`;
  const since = ageMs === undefined ? `${transactions} transactions` : duration(ageMs);
  const holds = `holds back vacuum for ${since}: no dead row of that time can be removed.`;
  switch (kind) {
    case 'session':
      return hint(
        `Session ${pid} of ${quoted} (${state ?? 'unknown'}) ${holds} End it: SELECT pg_terminate_backend(${pid}).`,
      );
    case 'prepared transaction':
      return hint(
        `The prepared transaction ${quoted} ${holds} Commit it, or: ROLLBACK PREPARED ${quoted}.`,
      );
    case 'replication slot':
      return hint(
        `The replication slot ${quoted} ${holds} See to its reader, or: SELECT pg_drop_replication_slot(${quoted}).`,
      );
  }
}

function onSwollen({ name, rows, deadRows, autovacuumedAgoMs }: TableFinding): Advice {
  const last =
    autovacuumedAgoMs === undefined
      ? 'was never here'
      : `was here ${duration(autovacuumedAgoMs)} ago`;
  return hint(
    `${name} has ${deadRows} dead rows beside ${rows} others, and autovacuum ${last}. See who holds it back; then VACUUM (ANALYZE) it once.`,
  );
}

function onIndex({ name, bytes, neededBytes }: IndexFinding, { schema }: Findings): Advice[] {
  if (neededBytes === undefined || bytes < LARGE_BYTES || bytes < 3 * neededBytes) return [];
  return [
    hint(
      `The index ${name} has ${Math.round(bytes / MIB)} MiB and would need about ${Math.ceil(neededBytes / MIB)}: REINDEX INDEX CONCURRENTLY ${quoteName(schema.name)}.${name}.`,
    ),
  ];
}

function duration(ms: number): string {
  const units: [name: string, ms: number][] = [
    ['d', 1440 * MINUTE_MS],
    ['h', 60 * MINUTE_MS],
    ['min', MINUTE_MS],
    ['s', SECOND_MS],
  ];
  const [name, unitMs] = units.find(([, each]) => ms >= each) ?? ['ms', 1];
  return `${Math.round((ms / unitMs) * 10) / 10} ${name}`;
}

function problem(text: string): Advice {
  return { level: 'problem', text };
}

function hint(text: string): Advice {
  return { level: 'hint', text };
}

function isProblem({ level }: Advice): boolean {
  return level === 'problem';
}
