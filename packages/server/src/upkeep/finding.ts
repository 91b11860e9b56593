/** What a look at one part of the system has found. */
export interface Finding {
  /** Which part: `configuration`, `database`, `broker`, `nats`, `kafka`, `redis`, `mongodb`, `clock`, `disk`, `server`, `inbox`, `lanes`, `handlers`, `routing`, `gateway`. */
  about: string;
  /** `broken`: it does not work so. `warning`: it will not for long, or not well. `note`: good to know. */
  level: Level;
  /** No credentials, and nothing that others wrote as it is. */
  what: string;
  /** What to do. */
  advice?: string;
}

const levels = ['broken', 'warning', 'note', 'fine'] as const;
export type Level = (typeof levels)[number];

/** Makes findings about one part. */
export function findingsAbout(about: string) {
  return (level: Level, what: string, advice?: string): Finding => ({
    about,
    level,
    what,
    ...(advice === undefined ? {} : { advice }),
  });
}

/** `1 message`, `1,200 messages`. */
export function countOf(number: number, one: string): string {
  return `${number.toLocaleString('en-US')} ${one}${number === 1 ? '' : 's'}`;
}

/** `450 KiB`, `1.4 GiB`. */
export function sizeOf(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let size = bytes;
  let unit = 0;
  for (; size >= 1024 && unit < units.length - 1; unit++) size /= 1024;
  return `${size < 10 ? Math.round(size * 10) / 10 : Math.round(size)} ${units[unit]}`;
}

/** Worst first; what is equally bad in the order of looking. */
export function worstFirst(findings: readonly Finding[]): Finding[] {
  return findings.toSorted((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level));
}
