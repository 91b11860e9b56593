/** Statistics of an audit trail, as a table with lines of load. */
import type { AuditStats, CategoryStats } from 'redrive';
import { absolute, type Column, grid, type Output, plural } from '../terminal/output.ts';
import { shown } from '../terminal/safe-text.ts';
import { count, duration, level } from '../terminal/terminal.ts';

const SPARKS = 24;
const SHOWN_ERRORS = 3;

const columns: readonly Column[] = [
  { title: 'CATEGORY', least: 8, good: 24 },
  { title: 'ATTEMPTS', right: true },
  { title: 'RETRIES', right: true },
  { title: 'SUCCESS', right: true },
  { title: 'RECOVERED', right: true },
  { title: 'MEAN', right: true },
  { title: '/MIN', right: true },
  { title: 'PEAK', right: true },
  { title: 'RETRIES OVER TIME' },
  { title: 'ERRORS', least: 12, good: 24, optional: true },
];

export function statsLines(stats: AuditStats, limit: number, output: Output): string[] {
  const { categories, events, unreadable, dropped, fromMs, toMs } = stats;
  if (fromMs === null || toMs === null) return ['There are no events.'];
  const listed = categories.slice(0, limit);
  const heading = `${plural(events, 'event')} from ${absolute(fromMs)} to ${absolute(toMs)} (${duration(toMs - fromMs)})`;
  if (listed.length === 0) return [heading, '', 'None of them is about an attempt.'];
  const isUnknown = listed.some(({ successRate }) => successRate === null);
  const isOfFailed = listed.some(({ meanAttemptsOf }) => meanAttemptsOf === 'failed');
  return [
    heading,
    '',
    ...grid(columns, listed.map(rowOf), output),
    '',
    ...note(
      isUnknown,
      'SUCCESS ?: there is no retry_succeeded of that category, so nobody knows. Write successes (audit: { successes: true }).',
    ),
    ...note(
      isOfFailed,
      'MEAN *: attempts of work that failed at least once; what succeeded at once is not written.',
    ),
    'RECOVERED: of the retryable work that failed at least once and ended, how much succeeded in the end.',
    ...note(categories.length > limit, `${categories.length - limit} more categories: --limit.`),
    ...note(
      dropped > 0,
      `${plural(dropped, 'event')} were dropped, as the writers said themselves.`,
    ),
    ...note(unreadable > 0, `${plural(unreadable, 'event')} could not be read.`),
  ];
}

function rowOf(stats: CategoryStats): string[] {
  const { meanAttempts, meanAttemptsOf } = stats;
  const mean = meanAttempts === null ? '-' : rounded(meanAttempts);
  return [
    shown(stats.category),
    count(stats.attempts),
    count(stats.retries),
    stats.successRate === null ? '?' : share(stats.successRate),
    stats.recoveryRate === null ? '-' : share(stats.recoveryRate),
    meanAttemptsOf === 'failed' && meanAttempts !== null ? `${mean}*` : mean,
    rounded(stats.retriesPerMinute),
    rounded(stats.peakRetriesPerMinute),
    sparkline(stats.load, SPARKS),
    stats.errors
      .slice(0, SHOWN_ERRORS)
      .map(({ type, count: times }) => `${shown(type)} ${count(times)}`)
      .join(', '),
  ];
}

/** One block for each part of the time, as high as its count. */
export function sparkline(load: readonly number[], width: number): string {
  const length = Math.min(width, load.length);
  const parts = Array.from({ length }, (_, i) => {
    const from = Math.floor((i * load.length) / length);
    const to = Math.floor(((i + 1) * load.length) / length);
    return load.slice(from, to).reduce((sum, one) => sum + one, 0) / (to - from);
  });
  const most = Math.max(0, ...parts);
  return parts.map((part) => level(part, most)).join('');
}

function note(isNeeded: boolean, text: string): string[] {
  return isNeeded ? [text] : [];
}

function rounded(number: number): string {
  return count(number >= 100 ? Math.round(number) : Math.round(number * 10) / 10);
}

/** 99.96 % is not all of it, and 0.02 % is not nothing. */
function share(part: number): string {
  const percent = part * 100;
  if (percent > 0 && percent < 0.1) return '<0.1 %';
  if (percent > 99.9 && percent < 100) return '>99.9 %';
  return `${Math.round(percent * 10) / 10} %`;
}
