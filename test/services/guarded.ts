/** What a guard process cleans up should this process end without doing so. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { join } from 'node:path';

export interface Charge {
  /** Names the charge; removed last. */
  readonly folder: string;
  /** The server that runs in it, if one does. */
  readonly pid?: number;
  /** What ends that server at once and in order. */
  readonly quitSignal: NodeJS.Signals;
}

export type Order =
  | { readonly kind: 'watch'; readonly charge: Charge }
  | { readonly kind: 'forget'; readonly folder: string };

const charges = new Map<string, Charge>();
let guard: ChildProcess | undefined;

/** Also for a folder already watched, when what runs in it changes. */
export function watch(charge: Charge): void {
  charges.set(charge.folder, charge);
  if (guard) tell(guard, { kind: 'watch', charge });
  else guard = startGuard();
}

export function forget(folder: string): void {
  charges.delete(folder);
  if (guard) tell(guard, { kind: 'forget', folder });
}

function startGuard(): ChildProcess {
  // Detached: what ends this process's group, such as Ctrl-C, must leave the guard to its work.
  const child = spawn(process.execPath, [join(import.meta.dirname, 'guard.ts')], {
    detached: true,
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const gone = () => {
    if (guard === child) guard = undefined;
  };
  child.on('error', gone).on('exit', gone);
  child.stdin.on('error', gone);
  // This process may end while the guard waits: that is what it waits for.
  child.unref();
  (child.stdin as Socket).unref();
  for (const charge of charges.values()) tell(child, { kind: 'watch', charge });
  return child;
}

function tell(child: ChildProcess, order: Order): void {
  child.stdin?.write(`${JSON.stringify(order)}\n`);
}
