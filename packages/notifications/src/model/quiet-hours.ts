/** Quiet hours: a window of the recipient's local day in which nothing is sent. Pure, and right on the days when clocks change. */
import { NotificationError } from '../errors.ts';
import type { Notification, QuietHours } from './notification.ts';

const MINUTE_MS = 60_000;
const DAY_MINUTES = 24 * 60;

/** The notification's own, or those of its user. */
export function quietHoursOf({ quietHours, recipient }: Notification): QuietHours | undefined {
  return quietHours ?? recipient.quietHours;
}

/** When the window is over that this time lies in. The time itself, where it lies in none. */
export function afterQuietHours(hours: QuietHours, atMs: number): number {
  const window = { from: minutesOf(hours.from), to: minutesOf(hours.to) };
  const local = localMinutes(hours.timeZone, atMs);
  if (!isWithin(window, local)) return atMs;
  const wholeMinute = atMs - (atMs % MINUTE_MS);
  const leftMinutes = (window.to - local + DAY_MINUTES) % DAY_MINUTES;
  const endMs = wholeMinute + leftMinutes * MINUTE_MS;
  if (localMinutes(hours.timeZone, endMs) === window.to) return endMs;
  // The clocks change before the end. From there on it is counted anew.
  return afterQuietHours(hours, changeOf(hours.timeZone, wholeMinute, leftMinutes));
}

/** The first minute by other clocks, of which there is one in these minutes. */
function changeOf(timeZone: string, fromMs: number, minutes: number): number {
  const offset = offsetMinutes(timeZone, fromMs);
  let before = 0;
  let after = minutes;
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (offsetMinutes(timeZone, fromMs + middle * MINUTE_MS) === offset) before = middle;
    else after = middle;
  }
  return fromMs + after * MINUTE_MS;
}

/** What is wrong with them, in words; undefined: nothing. */
export function quietHoursFaults({ from, to, timeZone }: QuietHours): QuietHoursFault[] {
  const faults: QuietHoursFault[] = [];
  for (const [field, time] of Object.entries({ from, to })) {
    if (typeof time === 'string' && /^([01]\d|2[0-3]):[0-5]\d$/.test(time)) continue;
    const message =
      time === undefined
        ? 'The time is missing. Write it as 22:00.'
        : `${JSON.stringify(time)} is not a time of day. Write it as 22:00.`;
    faults.push({ field, message });
  }
  if (faults.length === 0 && from === to) {
    const message = `Quiet hours from ${from} to ${to} have no length. Leave them out.`;
    faults.push({ field: 'to', message });
  }
  if (!isTimeZone(timeZone)) {
    const message =
      timeZone === undefined
        ? 'The time zone is missing. Use a name such as Europe/Berlin.'
        : `There is no time zone ${JSON.stringify(timeZone)}. Use a name such as Europe/Berlin.`;
    faults.push({ field: 'time_zone', message });
  }
  return faults;
}

function isTimeZone(name: unknown): boolean {
  try {
    return typeof name === 'string' && formatterOf(name) !== undefined;
  } catch {
    return false;
  }
}

interface QuietHoursFault {
  field: string;
  message: string;
}

interface Window {
  from: number;
  to: number;
}

/** A window that ends before it begins goes over midnight. */
function isWithin({ from, to }: Window, minutes: number): boolean {
  if (from <= to) return minutes >= from && minutes < to;
  return minutes >= from || minutes < to;
}

function minutesOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5));
}

function localMinutes(timeZone: string, atMs: number): number {
  return minutesOf(formatterOf(timeZone).format(atMs));
}

/** East of Greenwich, but for whole days. */
function offsetMinutes(timeZone: string, atMs: number): number {
  const utc = Math.floor(atMs / MINUTE_MS) % DAY_MINUTES;
  return (localMinutes(timeZone, atMs) - utc + DAY_MINUTES) % DAY_MINUTES;
}

/** Making one is slow. There are about 600 names of zones. */
const formatters = new Map<string, Intl.DateTimeFormat>();

function formatterOf(timeZone: string): Intl.DateTimeFormat {
  const known = formatters.get(timeZone);
  if (known) return known;
  let made: Intl.DateTimeFormat;
  try {
    const time = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
    made = new Intl.DateTimeFormat('en-GB', { ...time, timeZone });
  } catch (cause) {
    const message = `There is no time zone ${JSON.stringify(timeZone)}.`;
    throw new NotificationError('INVALID_QUIET_HOURS', message, { cause });
  }
  // The same zone may be written in many ways of upper and lower case.
  if (formatters.size < 2000) formatters.set(timeZone, made);
  return made;
}
