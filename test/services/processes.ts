/** Who descends from a process: what a crash takes down with it. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The children of a process, not their children: PostgreSQL has no more than those. */
export function childrenOf(parent: number): number[] {
  const all = existsSync('/proc/self/stat') ? fromProc() : fromPs();
  return all.filter(({ parent: one }) => one === parent).map(({ pid }) => pid);
}

interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
}

function fromProc(): ProcessInfo[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const stat = readStat(name);
      // The name in parentheses may hold anything, also parentheses; the parent is the second field after it.
      const parent = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[1];
      return parent === undefined ? [] : [{ pid: Number(name), parent: Number(parent) }];
    });
}

/** Undefined for a process that ended since the folder was read. */
function readStat(pid: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
}

function fromPs(): ProcessInfo[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  return stdout.split('\n').flatMap((line) => {
    const [pid, parent] = line.trim().split(/\s+/).map(Number);
    return pid && parent !== undefined ? [{ pid, parent }] : [];
  });
}
