/** What a look at one part of the system has found. */
export interface Finding {
  /** Which part: `configuration`, `database`, `broker`, `clock`, `disk`, `server`. */
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

/** Worst first; what is equally bad in the order of looking. */
export function worstFirst(findings: readonly Finding[]): Finding[] {
  return findings.toSorted((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level));
}
