/** A story as a picture: a lane for each provider, calls and waits to scale, and a line for each step with its reason. */
import type { RouteAttemptRecord, RoutingPolicy } from 'redrive';
import { type Cell, grid, type Output, plural } from '../terminal/output.ts';
import { shown } from '../terminal/safe-text.ts';
import { cut, duration, type Style } from '../terminal/terminal.ts';
import type { Story, Told } from './story.ts';

const MAX_LABEL = 20;
const MAX_LANES = 20;
const MAX_STEPS = 500;
const WAIT = '·';

export function drawStory(policy: RoutingPolicy, story: Story, output: Output): string[] {
  const isOne = story.requests.length === 1;
  const steps = story.requests
    .flatMap((told) => stepsOf(told, isOne))
    .sort((a, b) => a.atMs - b.atMs);
  return [
    output.paint('bold', headline(policy, story)),
    '',
    ...drawLanes(policy, story, output),
    '',
    ...grid(
      columns,
      steps.slice(0, MAX_STEPS).map(({ cells }) => cells),
      output,
    ),
    ...(steps.length > MAX_STEPS
      ? [`... and ${plural(steps.length - MAX_STEPS, 'step')} more.`]
      : []),
    '',
    ...endLines(story, output),
  ];
}

function headline({ id, version }: RoutingPolicy, { requests }: Story): string {
  const calls = requests.reduce((sum, { attempts }) => sum + attempts.length, 0);
  const many = requests.length === 1 ? '' : `${plural(requests.length, 'request')}, `;
  return `Policy ${shown(id)} ${shown(version)}: ${many}${plural(calls, 'call')} in ${duration(lengthOf(requests))}`;
}

/** From the start of the first request to the last end. */
function lengthOf(requests: readonly Told[]): number {
  return Math.max(0, ...requests.map(({ endedAtMs }) => endedAtMs));
}

/** `█` a call, `·` the wait before its retry; at its end how the call went. */
function drawLanes(policy: RoutingPolicy, { requests }: Story, output: Output): string[] {
  const called = new Set(requests.flatMap(({ attempts }) => attempts.map((one) => one.provider)));
  const names = policy.providers.map(({ name }) => name).filter((name) => called.has(name));
  const lanes = names.slice(0, MAX_LANES);
  const labelWidth = Math.min(MAX_LABEL, Math.max(4, ...lanes.map((name) => name.length)));
  const width = output.width - labelWidth - 2;
  const scale = (width - 1) / Math.max(1, lengthOf(requests));
  const lines = lanes.map((name) => {
    const cells = Array.from({ length: width }, (): [string, Style?] => [' ']);
    for (const { startedAtMs, attempts } of requests) {
      for (const one of attempts) {
        if (one.provider === name) drawCall(cells, one, startedAtMs, scale);
      }
    }
    const drawn = cells.map(([glyph, style]) => (style ? output.paint(style, glyph) : glyph));
    return `${cut(name, labelWidth).padEnd(labelWidth)}  ${drawn.join('')}`.trimEnd();
  });
  const end = duration(lengthOf(requests));
  const axis = `${'0 ms'.padEnd(Math.max(5, width - end.length))}${end}`;
  const more =
    names.length > MAX_LANES ? [`... and ${names.length - MAX_LANES} more providers`] : [];
  return [`${' '.repeat(labelWidth)}  ${output.paint('dim', axis)}`, ...lines, ...more];
}

const ends: Readonly<Record<RouteAttemptRecord['outcome'], readonly [string, Style]>> = {
  ok: ['✓', 'green'],
  failed: ['✗', 'red'],
  abandoned: ['–', 'yellow'],
};

const marks = new Set(Object.values(ends).map(([mark]) => mark));

function drawCall(
  cells: [string, Style?][],
  { startedAtMs, durationMs, waitedMs, outcome }: RouteAttemptRecord,
  offsetMs: number,
  scale: number,
): void {
  const cellOf = (ms: number) => Math.min(cells.length - 1, Math.round((offsetMs + ms) * scale));
  const start = cellOf(startedAtMs);
  const end = Math.max(start, cellOf(startedAtMs + durationMs));
  for (let i = cellOf(startedAtMs - waitedMs); i < start; i++) {
    if (cells[i]?.[0] === ' ') cells[i] = [WAIT, 'dim'];
  }
  const [mark, style] = ends[outcome];
  for (let i = start; i < end; i++) {
    // The end of the call before stays to be seen.
    if (i > start || !marks.has(cells[i]?.[0] ?? '')) cells[i] = ['█', style];
  }
  cells[end] = [mark, style];
}

const columns = [
  { title: 'AT', right: true },
  { title: 'REQUEST', optional: true, least: 4 },
  { title: 'PROVIDER', least: 8 },
  { title: 'OUTCOME', least: 12 },
  { title: 'REASON', least: 20 },
] as const;

interface Row {
  atMs: number;
  cells: Cell[];
}

/** A line for each wait and for each call, and one for a request that nobody answered. */
function stepsOf(
  { startedAtMs, endedAtMs, requestId, attempts, error }: Told,
  isOne: boolean,
): Row[] {
  const id = isOne ? '' : shown(requestId);
  const row = (atMs: number, ...cells: Cell[]): Row => ({
    atMs,
    cells: [duration(atMs), id, ...cells],
  });
  const rows = attempts.flatMap((one) => {
    const atMs = startedAtMs + one.startedAtMs;
    const call = row(atMs, one.provider, outcomeOf(one), reasonOf(one));
    if (one.waitedMs === 0) return [call];
    const text = `wait ${duration(one.waitedMs)}`;
    return [row(atMs - one.waitedMs, one.provider, { text, style: 'dim' }, ''), call];
  });
  if (!error) return rows;
  const end: Cell = { text: `no answer: ${error.code}`, style: 'red' };
  return [...rows, row(endedAtMs, '', end, shown(error.message))];
}

function outcomeOf({ outcome, status = '', durationMs }: RouteAttemptRecord): Cell {
  const word = outcome === 'failed' ? shown(status) : outcome;
  return { text: `${word} after ${duration(durationMs)}`, style: ends[outcome][1] };
}

/** The last step is the one that decided. The numbers of steps are stages, which nobody asks for here. */
function reasonOf({ explanation, hedge }: RouteAttemptRecord): string {
  const step = (explanation.steps.at(-1) ?? '').replace(/^\d+\. /, '');
  return shown(`${hedge ? 'hedge, ' : ''}${explanation.reason}: ${step}`);
}

function endLines({ requests, health }: Story, { paint }: Output): string[] {
  const unanswered = requests.filter(({ error }) => error !== undefined).length;
  const answer =
    requests.length > 1
      ? `${requests.length - unanswered} of ${requests.length} requests were answered.`
      : unanswered > 0
        ? 'No provider answered.'
        : `${requests[0]?.provider} answered.`;
  const out = Object.entries(health)
    .filter(([, { state }]) => state !== 'closed')
    .map(([name, { state }]) => `${name} is ${state} then.`);
  return [paint(unanswered > 0 ? 'red' : 'green', answer), ...out];
}
