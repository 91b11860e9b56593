/** How far a bulk job is, in a bar and a few words. */
import type { Output } from '../terminal/output.ts';
import { progressLine } from '../terminal/progress.ts';
import { shown } from '../terminal/safe-text.ts';
import { count } from '../terminal/terminal.ts';
import { stateCell, textOf } from '../views.ts';
import type { JobView } from '../wire.ts';

/** Nothing more happens by itself. */
export function isOver({ state }: JobView): boolean {
  return state === 'finished' || state === 'stopped' || state === 'cancelled';
}

export function jobLines(job: JobView, output: Output): string[] {
  const cell = stateCell(job.state);
  const state = typeof cell === 'string' ? cell : output.paint(cell.style, cell.text);
  const pace = job.per_second == null ? '' : `, ${count(job.per_second)} a second`;
  const why = textOf(job.why);
  return [
    `Job ${job.id}, ${shown(job.action)}: ${state}${stepOf(job)}${pace}`,
    progressLine(job.done + job.skipped + job.failed, job.total, output),
    countsOf(job, output),
    ...(why === undefined ? [] : [output.paint('red', why)]),
    ...adviceOf(job),
  ];
}

function stepOf({ step, canary }: JobView): string {
  return step == null ? '' : `, step ${step} of its canary (${canary.join(', ')})`;
}

function countsOf(job: JobView, { paint }: Output): string {
  const parts: (readonly [number, string, ('red' | 'yellow')?])[] = [
    [job.done, job.action === 'replay' ? 'sent' : 'closed'],
    [job.underway, 'under way'],
    [job.taken, 'with their queue'],
    [job.back, 'back in the inbox', 'red'],
    [job.skipped, 'already closed by somebody'],
    [job.failed, 'not possible', 'yellow'],
    [job.left, 'left'],
    [job.ignored ?? 0, 'not open when it began', 'yellow'],
  ];
  return parts
    .filter(([number], i) => number > 0 || i === 0)
    .map(([number, what, style]) => {
      const text = `${count(number)} ${what}`;
      return style === undefined ? text : paint(style, text);
    })
    .join(', ');
}

function adviceOf({ state, id, failed }: JobView): string[] {
  if (state === 'stopped') {
    return [
      `redrive bulk resume ${id} lets it go on all the same; redrive bulk cancel ${id} ends it.`,
    ];
  }
  if (state === 'paused') return [`redrive bulk resume ${id} lets it go on.`];
  if (state === 'finished' && failed > 0) {
    return ['What was not possible is still in the inbox: redrive review list shows it.'];
  }
  return [];
}
