/**
 * What really happened in a child, written by the test's own code and not by the engine. A write is in the kernel's
 * hands when it returns, so it outlives the process, however that ends.
 */
import { openSync, readFileSync, writeSync } from 'node:fs';

export type JournalEntry =
  /** It was about to submit this number. */
  | { type: 'asked'; number: number }
  | { type: 'accepted'; number: number; id: string; status: 'accepted' | 'duplicate' }
  | { type: 'refused'; number: number; code: string }
  | { type: 'began'; id: string; attempt: number; atMs: number }
  | {
      type: 'ended';
      id: string;
      attempt: number;
      atMs: number;
      how: 'worked' | 'threw' | 'aborted';
    }
  /** What the engine said of an execution, after it was written. */
  | { type: 'settled'; id: string; attempt: number; to: SettledTo; delayMs?: number }
  | { type: 'stopped' };

export type SettledTo = 'done' | 'retry' | 'failed' | 'leaseLost';

export type Journal = (entry: JournalEntry) => void;

export function openJournal(file: string): Journal {
  const fd = openSync(file, 'a');
  return (entry) => void writeSync(fd, `${JSON.stringify(entry)}\n`);
}

export function readJournal(file: string): JournalEntry[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  // Without its end of line the last one was never finished.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as JournalEntry);
}
