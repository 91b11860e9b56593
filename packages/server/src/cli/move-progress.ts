/** What `redrive move` shows. */
import type { MoveProgress, MoveResult } from '../upkeep/move.ts';
import type { Io } from './command.ts';
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
        io.err(`${step}: ${count(done)} of ${count(of.tasks)} tasks so far\n`);
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
    `Moved ${count(moved.tasks)} tasks with ${count(moved.attempts)} failed executions, ${count(moved.items)} items of the inbox, ` +
      `${count(moved.messages)} messages that wait to be published and ${count(moved.events)} events of the audit trail.`,
  ];
  if (known.tasks + known.items > 0) {
    lines.push(
      `${count(known.tasks)} tasks and ${count(known.items)} items were known there already, and stay as they are there.`,
    );
  }
  if (openJobs > 0) {
    lines.push(
      `${count(openJobs)} bulk jobs were not over and were left behind: their items are in the inbox. Start them again.`,
    );
  }
  lines.push(
    `The file is now ${renamedTo}: delete it when you are sure.`,
    'Start the service with the same DATABASE_URL.',
  );
  return `${lines.join('\n')}\n`;
}
