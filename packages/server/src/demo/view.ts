/** The demo on a screen, and in a line. Pure. */
import { grid, type Output } from '../cli/terminal/output.ts';
import { count, level, type Style, visibleLength, wrap } from '../cli/terminal/terminal.ts';
import type { Board } from './board.ts';
import { names, type ReceiverName, type Receivers } from './receivers.ts';
import { type LaneCounts, sentence, waiting } from './story.ts';

export interface Scene {
  board: Board;
  order: Receivers['order'];
  taken: Receivers['taken'];
  elapsedMs: number;
  url: string;
}

const WHAT: Readonly<Record<ReceiverName, string>> = {
  mail: 'steady',
  stock: '30 % fail',
  bank: 'has outages',
};

const STATES: Readonly<Record<string, { text: string; style: Style }>> = {
  closed: { text: 'closed', style: 'green' },
  open: { text: 'OPEN', style: 'red' },
  probing: { text: 'probing', style: 'yellow' },
};

const MAX_STEPS = 40;
const TABLE = 62;

export function drawScene(scene: Scene, output: Output): string[] {
  const { board, order, elapsedMs, url } = scene;
  const { paint, width } = output;
  const steps = Math.max(0, Math.min(MAX_STEPS, width - TABLE));
  const rows = names.map((name) => {
    const lane = board.lanes[name];
    return [
      { text: name, style: 'bold' as const },
      WHAT[name],
      { text: count(lane.delivered), style: 'green' as const },
      count(lane.retries),
      count(waiting(lane)),
      STATES[lane.state] ?? lane.state,
      {
        text: lane.inbox > 0 ? count(lane.inbox) : '-',
        style: lane.inbox > 0 ? ('red' as const) : ('dim' as const),
      },
      sparkline(board, name, steps),
    ];
  });
  const columns = [
    { title: 'TO' },
    { title: '', optional: true as const },
    { title: 'DELIVERED', right: true as const },
    { title: 'RETRIES', right: true as const },
    { title: 'WAITING', right: true as const },
    { title: 'BREAKER' },
    { title: 'INBOX', right: true as const },
    { title: 'DELIVERED OVER TIME', least: steps, optional: true as const },
  ];
  const lines = [
    `${paint('bold', 'Redrive demo')}  ${clock(elapsedMs)}  ${paint('dim', `a service at ${url}`)}`,
    '',
    ...grid(columns, rows, { ...output, tableWidth: width }),
    '',
    ...wrap(`${paint('bold', 'Now')}    ${sentence(board.lanes, elapsedMs)}`, width, '       '),
    ...wrap(`${paint('bold', 'Order')}  ${orderInWords(order)}`, width, '       '),
    '',
    paint('dim', 'Look around, in another terminal:'),
    ...[
      `curl ${url}/api/v1/lanes`,
      `curl ${url}/api/v1/review`,
      `curl -N ${url}/api/v1/events`,
      `redrive review list --url ${url}`,
    ].map((line) => `  ${paint('cyan', line)}`),
    paint('dim', 'Ctrl-C ends it, and leaves nothing behind.'),
  ];
  // A line that the terminal breaks in two could not be drawn over.
  return lines.filter((line) => visibleLength(line) <= width);
}

/** The same in a line, where nothing can be drawn again. */
export function sceneLine({ board, elapsedMs }: Scene): string {
  const lanes = names.map((name) => {
    const lane = board.lanes[name];
    const state = lane.state === 'closed' ? '' : `, breaker ${lane.state}`;
    return `${name} ${count(lane.delivered)} delivered, ${count(waiting(lane))} waiting${state}`;
  });
  return `${clock(elapsedMs)}  ${lanes.join('  |  ')}  |  ${sentence(board.lanes, elapsedMs)}`;
}

/** What it came to. */
export function summaryLine({ board, taken }: Scene): string {
  const total = (of: (lane: LaneCounts) => number): number =>
    names.reduce((sum, name) => sum + of(board.lanes[name]), 0);
  const sum = (of: (lane: LaneCounts) => number): string => count(total(of));
  // What the service calls delivered, the receivers must have.
  const lost = Math.max(0, total(({ delivered }) => delivered) - taken.messages);
  const again = taken.again > 0 ? `, ${count(taken.again)} came twice` : '';
  return (
    `${sum(({ accepted }) => accepted)} tasks: ${sum(({ delivered }) => delivered)} delivered, ${sum(waiting)} still waiting, ` +
    `${sum(({ inbox }) => inbox)} in the inbox, ${lost === 0 ? 'none' : count(lost)} lost${again}. ${sum(({ retries }) => retries)} deliveries failed and were tried again.`
  );
}

/** For programs. */
export function sceneData({ board, order, taken, elapsedMs, url }: Scene): object {
  const lanes = names.map((name) => ({
    name,
    ...board.lanes[name],
    waiting: waiting(board.lanes[name]),
  }));
  return {
    elapsed_ms: Math.round(elapsedMs),
    url,
    lanes,
    received: taken,
    ordered: { received: order.received, in_order: order.isInOrder },
    now: sentence(board.lanes, elapsedMs),
  };
}

function sparkline(board: Board, name: ReceiverName, length: number): string {
  const all = names.flatMap((one) => board.history(one, length));
  const most = Math.max(1, ...all);
  return board
    .history(name, length)
    .map((value) => level(value, most))
    .join('');
}

function orderInWords({ received, isInOrder }: Receivers['order']): string {
  const said = `${count(received)} messages of customer 7 to stock`;
  return isInOrder
    ? `${said}, each after the one before, retries and all.`
    : `${said}: one overtook another.`;
}

function clock(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
