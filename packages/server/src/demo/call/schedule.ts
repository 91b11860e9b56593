/** A policy's waits, one line each: where each would be without jitter, and where jitter may put it. */
import { delayFor, definePolicy, type Policy } from 'redrive';
import { duration, type Terminal, wrap } from '../../cli/terminal/terminal.ts';

const MAX_LINES = 10;

export function drawSchedule(written: Policy, { width, paint }: Terminal): string[] {
  const policy = definePolicy(written);
  const plain = definePolicy({ ...written, jitter: 'none' });
  const waits: { raw: number; low: number; high: number }[] = [];
  let lastLow: number | undefined;
  let lastHigh: number | undefined;
  for (let attempt = 1; attempt < policy.maxAttempts && attempt <= MAX_LINES; attempt++) {
    const low = delayFor(policy, { attempt, random: 0, previousMs: lastLow ?? 0 });
    const high = delayFor(policy, { attempt, random: 1, previousMs: lastHigh ?? 0 });
    waits.push({ raw: delayFor(plain, { attempt }), low, high });
    [lastLow, lastHigh] = [low, high];
  }
  if (waits.length === 0) return ['  It never waits: there is one attempt.'];

  const longest = Math.max(...waits.map(({ raw, high }) => Math.max(raw, high)), 1);
  const labels = waits.map(({ low, high }) => range(low, high));
  const room = width - 20 - Math.max(...labels.map((label) => label.length));
  const lines = waits.map(({ raw, low, high }, i) => {
    const at = (ms: number) => Math.round((ms / longest) * (room - 1));
    const cells = Array.from({ length: room }, (_, x) =>
      x === at(raw) ? paint('bold', '┃') : x >= at(low) && x <= at(high) ? paint('cyan', '▒') : ' ',
    );
    return `  after attempt ${String(i + 1).padStart(2)} ${cells.join('')} ${labels[i]}`.trimEnd();
  });
  if (policy.maxAttempts - 1 > MAX_LINES) lines.push('  ... and so on');
  const totals = [sum(waits.map(({ low }) => low)), sum(waits.map(({ high }) => high))] as const;
  const legend = `  ${paint('bold', '┃')} without jitter   ${paint('cyan', '▒')} where jitter '${policy.jitter}' may put it`;
  const deadline =
    policy.deadline === undefined ? '' : `, within a deadline of ${duration(policy.deadline)}`;
  const total = `  In all ${range(...totals)} of waiting${deadline}.`;
  return [...lines, '', ...wrap(legend, width, '    '), ...wrap(total, width, '  ')];
}

function range(low: number, high: number): string {
  return low === high ? duration(low) : `${duration(low)} to ${duration(high)}`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
