/** What `redrive move` shows. */
import type { MoveProgress, MoveResult } from '../../upkeep/move.ts';
import type { Io } from '../command.ts';
import { plural } from './output.ts';
import { bar, count } from './terminal.ts';

const WIDTH = 30;

/** A line that is drawn again on a terminal; elsewhere one line per step. */
export function progressOf(io: Io, json: boolean) {
  let last = '';
  return {
    show({ step, moved, known, of }: MoveProgress): void {
      if (json) return;
      const done = moved.tasks + known.tasks;
      const share = of.tasks === 0 ? 1 : done / of.tasks;
      if (io.isTty) {
        const text = `  ${bar(share, WIDTH).padEnd(WIDTH)} ${count(done)} of ${count(of.tasks)} tasks, ${step}`;
        io.out(`\r\u001B[K${text}`);
        last = text;
      } else if (step !== last) {
        if (step in of) {
          const kind = step as keyof typeof of;
          io.err(`${step}: ${count(moved[kind] + known[kind])} of ${count(of[kind])}\n`);
        }
        last = step;
      }
    },
    end(): void {
      if (!json && io.isTty && last !== '') io.out('\r\u001B[K');
    },
  };
}

export function summaryOf({
  moved,
  known,
  openJobs,
  renamedTo,
}: Extract<MoveResult, { type: 'moved' }>): string {
  const lines = [
    `Moved ${count(moved.tasks)} tasks with ${plural(moved.attempts, 'failed execution')}, ${plural(moved.items, 'item')} of the inbox, ` +
      `${plural(moved.messages, 'message')} for the review queue and ${plural(moved.events, 'event')} of the audit trail.`,
  ];
  if (known.tasks + known.items > 0) {
    lines.push(
      `Known there already, and left as they are there: ${plural(known.tasks, 'task')}, ${plural(known.items, 'item')}.`,
    );
  }
  if (openJobs > 0) {
    lines.push(
      `Left behind: ${plural(openJobs, 'bulk job')} that had not come to an end. What was left to do is in the inbox: start again from there.`,
    );
  }
  lines.push(
    `The file is now ${renamedTo}: delete it when you are sure.`,
    'Start the service with the same DATABASE_URL.',
  );
  return `${lines.join('\n')}\n`;
}
