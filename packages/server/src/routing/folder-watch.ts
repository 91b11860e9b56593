/** Says when a folder may have changed: at once by a hint of the system where it gives one, else by looking now and then. */
import { type FSWatcher, statSync, watch } from 'node:fs';
import type { Clock } from 'redrive';

const POLL_MS = 10_000;
/** One change of a file is several events, and an editor makes several changes. */
const DEBOUNCE_MS = 100;

/** Calls back until it is closed. The first call comes with the first hint or poll. */
export function watchFolder(dir: string, clock: Clock, onChange: () => void): { close(): void } {
  let watcher: FSWatcher | undefined;
  /** Which folder is watched: one that was removed and made again has another number. */
  let watched: string | undefined;
  let poll: unknown;
  let soon: unknown;

  const hint = () => {
    soon ??= clock.setTimer(
      () => {
        soon = undefined;
        onChange();
      },
      DEBOUNCE_MS,
      true,
    );
  };
  const look = () => {
    begin();
    onChange();
    poll = clock.setTimer(look, POLL_MS, true);
  };

  /** Without a watcher (no such folder, no more of the system's handles) the poll finds what changed. */
  function begin(): void {
    const found = identityOf(dir);
    if (watcher && found === watched) return;
    watcher?.close();
    watcher = undefined;
    watched = found;
    if (found === undefined) return;
    try {
      watcher = watch(dir, { persistent: false }, hint);
      watcher.on('error', () => {
        watcher?.close();
        watcher = undefined;
      });
    } catch {
      watcher = undefined;
    }
  }

  begin();
  poll = clock.setTimer(look, POLL_MS, true);
  return {
    close() {
      watcher?.close();
      watcher = undefined;
      clock.clearTimer(poll);
      if (soon !== undefined) clock.clearTimer(soon);
    },
  };
}

function identityOf(dir: string): string | undefined {
  try {
    const { dev, ino } = statSync(dir);
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}
