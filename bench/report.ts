import { type Metric, type NotRun, type Result, times } from './result.ts';

export interface Heading {
  suite: string;
  case: string;
  about: string;
}

/** One line of `--json`. */
export function jsonLine({ suite, case: name }: Heading, result: Result): string {
  const { metric, redrive, peers, missing } = result;
  const rounded = Object.entries(peers).map(([peer, value]) => [peer, round(value)]);
  const line = { suite, case: name, metric, redrive: round(redrive) };
  return JSON.stringify({
    ...line,
    peers: Object.fromEntries(rounded) as Record<string, number>,
    ...(missing && Object.keys(missing).length > 0 ? { missing } : {}),
  });
}

export function notRunLine({ suite, case: name }: Heading, { notRun }: NotRun): string {
  return JSON.stringify({ suite, case: name, notRun });
}

export function notRunText({ suite, case: name, about }: Heading, { notRun }: NotRun): string {
  return `${suite} · ${name}: ${about}\n  not run: ${notRun}`;
}

/** The same for a person: best first, with ratios to redrive, the verdicts and the notes. */
export function table(heading: Heading, result: Result): string {
  const { metric, redrive, peers, spread = {}, missing = {} } = result;
  const higherIsBetter = metric === 'ops/s';
  const rows = Object.entries({ redrive, ...peers })
    .toSorted((a, b) => (higherIsBetter ? b[1] - a[1] : a[1] - b[1]))
    .map(([name, value]) => [
      name,
      show(value, metric),
      spread[name] === undefined ? '' : `± ${Math.round(spread[name] * 100)} %`,
      compare(value, redrive, metric),
    ]);
  const widths = [0, 1, 2, 3].map((column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const lines = rows.map((row) => {
    const [name = '', ...cells] = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
    );
    return `  ${row[0] === 'redrive' ? '▸' : ' '} ${name}  ${cells.join('  ')}`.trimEnd();
  });
  const absent = Object.entries(missing).map(([name, why]) => `    ${name}  not here: ${why}`);
  const verdicts = (result.verdicts ?? []).map(
    ({ target, measured, met }) => `  ${met ? '✓ met   ' : '✗ missed'} ${target}: ${measured}`,
  );
  const notes = (result.notes ?? []).map((note) => `  · ${note}`);
  return [
    `${heading.suite} · ${heading.case}: ${heading.about}`,
    ...lines,
    ...absent,
    ...verdicts,
    ...notes,
  ].join('\n');
}

/** Four digits tell all that a measurement can; bytes are counted, not measured. */
function round(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(4));
}

function show(value: number, metric: Metric): string {
  if (metric === 'ns/op') return duration(value);
  if (metric === 'ops/s') return rate(value);
  if (metric === 'ms') return duration(value * 1e6);
  // Less than a hundred is an average; minus nothing is nothing.
  return value < 100
    ? `${(Math.round(value * 100) / 100 || 0).toFixed(2)} B`
    : `${value.toLocaleString('en')} B`;
}

function rate(perSecond: number): string {
  if (perSecond >= 1e6) return `${(perSecond / 1e6).toFixed(2)} M/s`;
  return `${(perSecond / 1000).toFixed(1)} k/s`;
}

function duration(ns: number): string {
  if (ns < 1000) return `${ns.toFixed(0)} ns`;
  return ns < 1e6 ? `${(ns / 1000).toFixed(2)} µs` : `${(ns / 1e6).toFixed(2)} ms`;
}

/** How often redrive's value goes into this one. Bytes around zero have no ratio. */
function compare(value: number, redrive: number, metric: Metric): string {
  return metric === 'bytes' && redrive < 100 ? '' : times(value / redrive);
}
