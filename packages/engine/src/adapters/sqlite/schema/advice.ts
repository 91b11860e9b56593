import type { Findings } from './examine.ts';

/** `problem`: it does not work, or may lose something. `hint`: it could be better. */
export interface Advice {
  level: 'problem' | 'hint';
  text: string;
}

/** What to do about what was found, problems first. Pure. */
export function adviceOn(findings: Findings): Advice[] {
  const all = [
    ...onDamage(findings),
    ...onPlace(findings),
    ...onSchema(findings),
    ...onSize(findings),
    ...onLog(findings),
  ];
  return [...all.filter(isProblem), ...all.filter((one) => !isProblem(one))];
}

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/** The log alone may grow to as much before it is copied into the file. */
const TOO_LITTLE_BYTES = 64 * MIB;
const LARGE_LOG_BYTES = 256 * MIB;

function onDamage({ path, damage = [] }: Findings): Advice[] {
  if (damage.length === 0) return [];
  return [
    problem(
      `${path} is damaged (${damage[0]}). Stop all processes that use it and restore a backup; what can be saved without one: sqlite3 ${path} .recover.`,
    ),
  ];
}

function onPlace({ path, networkFileSystem, freeBytes, fileBytes }: Findings): Advice[] {
  const left = `${Math.floor(freeBytes / MIB)} MiB are left of the disk under ${path}.`;
  return [
    ...(networkFileSystem === undefined
      ? []
      : [
          problem(
            `${path} is on a network file system (${networkFileSystem}), where it will be damaged sooner or later. Move it to a local disk, or use PostgreSQL.`,
          ),
        ]),
    ...(freeBytes < TOO_LITTLE_BYTES
      ? [problem(`${left} New work is refused when it is full. Make room now.`)]
      : freeBytes < Math.max(GIB, fileBytes / 5)
        ? [hint(`${left} Make room before it is full.`)]
        : []),
  ];
}

function onSchema({ path, schema: { version, oldest = 0, known } }: Findings): Advice[] {
  if (version === undefined || version === 0) {
    return [
      problem(`${path} has no tables of Redrive. A store that opens it makes them, if it is ours.`),
    ];
  }
  if (oldest > known) {
    return [
      problem(
        `${path} needs a Redrive that knows schema ${oldest}; this one knows ${known}. Update this program.`,
      ),
    ];
  }
  if (version >= known) return [];
  return [
    hint(
      `${path} has schema ${version}; this program brings it to ${known} when it opens it. Copy it before.`,
    ),
  ];
}

function onSize({ path, pageBytes, pages, freePages }: Findings): Advice[] {
  const freeMiB = Math.floor((freePages * pageBytes) / MIB);
  if (freeMiB < 64 || freePages * 2 < pages) return [];
  return [
    hint(
      `${freeMiB} MiB of ${path} hold nothing. New rows will use them; to give them back, run VACUUM while nobody works: it needs room for a copy.`,
    ),
  ];
}

function onLog({ path, logBytes, journalMode }: Findings): Advice[] {
  return [
    ...(logBytes > LARGE_LOG_BYTES
      ? [
          hint(
            `The log beside ${path} has ${Math.floor(logBytes / MIB)} MiB: somebody reads it without an end, so that it cannot begin anew. Look for a process that keeps a query open.`,
          ),
        ]
      : []),
    ...(journalMode === 'wal'
      ? []
      : [
          hint(
            `${path} has the journal mode ${journalMode}: another program has changed it. A store that opens it sets wal again.`,
          ),
        ]),
  ];
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
