/** The demo of notifications on a screen, in lines and as data. Pure. */
import { type Lane, laneOfPriority, lanes } from '@redrive/notifications';
import { grid, type Output, plural } from '../../cli/terminal/output.ts';
import { duration, type Style, visibleLength, wrap } from '../../cli/terminal/terminal.ts';
import { cast } from './cast.ts';
import type { Happening, Row, Scene } from './play.ts';

const STYLES: Readonly<Record<string, Style>> = {
  AwaitingRetry: 'yellow',
  Retrying: 'cyan',
  DeliverySucceeded: 'green',
  PermanentFailure: 'red',
  Skipped: 'dim',
  Expired: 'magenta',
};

const columns = [
  { title: 'NOTIFICATION' },
  { title: 'PRIORITY' },
  { title: 'LANE', optional: true as const },
  { title: 'ATTEMPT', right: true as const },
  { title: 'STATE' },
  { title: 'NEXT' },
  { title: 'TROUBLE', least: 10, optional: true as const },
];

export function drawScene(scene: Scene, latest: readonly string[], output: Output): string[] {
  const { rows, letters, elapsedMs, nowMs } = scene;
  const { paint, width } = output;
  const cells = rows.map(({ role, delivery }) => [
    { text: role.id, style: 'bold' as const },
    role.priority,
    laneOfPriority[role.priority],
    delivery ? String(delivery.attempt) : '-',
    delivery
      ? { text: delivery.state, style: STYLES[delivery.state] ?? ('dim' as const) }
      : { text: 'sent', style: 'dim' as const },
    nextOf({ role, ...(delivery ? { delivery } : {}) }, nowMs),
    { text: role.trouble, style: 'dim' as const },
  ]);
  const dead = letters.map((letter) => `${letter.notification_id} (${letter.reason})`).join(', ');
  const lines = [
    `${paint('bold', 'Redrive demo')}  ${clockOf(elapsedMs)}  ${paint('dim', 'notification retries')}`,
    '',
    ...grid(columns, cells, { ...output, tableWidth: width }),
    '',
    ...wrap(`${paint('bold', 'Lanes')}         ${lanesInWords(rows)}`, width, ' '.repeat(14)),
    ...wrap(`${paint('bold', 'Dead letters')}  ${dead || 'none'}`, width, ' '.repeat(14)),
    '',
    ...latest.map((line) => paint('dim', line)),
  ];
  // A line that the terminal breaks in two could not be drawn over.
  return lines.filter((line) => visibleLength(line) <= width);
}

/** One happening in a line. */
export function happeningLine(happening: Happening, elapsedMs: number): string {
  const [id, text] = wordsOf(happening);
  const priority = cast.find((role) => role.id === id)?.priority ?? '';
  return `${clockOf(elapsedMs)}  ${id.padEnd(10)}  ${priority.padEnd(8)}  ${text}`;
}

function wordsOf(happening: Happening): [id: string, text: string] {
  switch (happening.type) {
    case 'sent':
      return [happening.id, `→ attempt ${happening.attempt}`];
    case 'replayed':
      return [happening.id, '↻ an operator replays the dead letter'];
    case 'dead_letter': {
      const { notification_id: id, reason, attempts } = happening.letter;
      return [id, `■ dead letter: ${reason}, with ${plural(attempts.length, 'attempt')}`];
    }
    case 'event': {
      const { event_type: type, notification_id: id, data } = happening.event;
      const lane = typeof data['lane'] === 'string' ? `  [${data['lane']} lane]` : '';
      const said = typeof data['explanation'] === 'string' ? `: ${data['explanation']}` : '';
      const mark = data['replay'] === true ? '↻' : (MARKS[type] ?? '·');
      return [id, `${mark} ${type}${said}${lane}`];
    }
  }
}

const MARKS: Readonly<Record<string, string>> = {
  retry_scheduled: '✗',
  delivered: '✔',
  failed: '■',
  skipped: '■',
  expired: '■',
};

/** What it came to. */
export function summaryLine({ rows, letters }: Scene): string {
  const count = (state: string) => rows.filter(({ delivery }) => delivery?.state === state).length;
  return (
    `${plural(rows.length, 'notification')}: ${count('DeliverySucceeded')} delivered, ${count('PermanentFailure')} failed for good, ` +
    `${count('Skipped')} skipped, ${count('Expired')} expired, ${count('AwaitingRetry')} waiting. ${plural(letters.length, 'dead letter')}.`
  );
}

/** For programs. */
export function happeningData(happening: Happening, elapsedMs: number): object {
  return { elapsed_ms: Math.round(elapsedMs), ...happening };
}

export function sceneData({ rows, letters, elapsedMs }: Scene): object {
  return {
    elapsed_ms: Math.round(elapsedMs),
    notifications: rows.map(({ role, delivery }) => ({
      id: role.id,
      priority: role.priority,
      lane: laneOfPriority[role.priority],
      state: delivery?.state ?? null,
      attempt: delivery?.attempt ?? null,
    })),
    dead_letters: letters.map((letter) => letter.notification_id),
  };
}

function nextOf({ delivery }: Row, nowMs: number): string {
  if (delivery?.state === 'PermanentFailure') return delivery.reason ?? '';
  if (delivery?.state !== 'AwaitingRetry') return '';
  return `in ${duration(Math.max(0, delivery.dueAtMs! - nowMs))}`;
}

function lanesInWords(rows: readonly Row[]): string {
  const waiting = (lane: Lane) =>
    rows.filter(
      ({ role, delivery }) =>
        laneOfPriority[role.priority] === lane && delivery?.state === 'AwaitingRetry',
    ).length;
  return lanes.map((lane) => `${lane}: ${waiting(lane)} waiting`).join(', ');
}

function clockOf(ms: number): string {
  return `${(ms / 1000).toFixed(1).padStart(4)} s`;
}
