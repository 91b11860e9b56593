import { readdirSync, readFileSync } from 'node:fs';

/**
 * What a process and its children have used of the processors, in ms, the children that have ended included. Other
 * processes disturb it far less than the clock. NaN where there is no /proc.
 */
export function cpuMs(pid: number): number {
  const own = statOf(pid);
  if (!own) return Number.NaN;
  let ticks = own.ticks + own.endedChildren;
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? statOf(Number(name)) : undefined;
    if (stat?.parent === pid) ticks += stat.ticks + stat.endedChildren;
  }
  return ticks * MS_PER_TICK;
}

export function parentOf(pid: number): number | undefined {
  return statOf(pid)?.parent;
}

/** On every Linux that Node runs on. */
const MS_PER_TICK = 10;

function statOf(pid: number): { parent: number; ticks: number; endedChildren: number } | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    // It has ended, or this is no Linux.
    return undefined;
  }
  // After the name, which may hold anything, brackets too.
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const [, parent = 0] = fields;
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15);
  return { parent, ticks: user + system, endedChildren: endedUser + endedSystem };
}
