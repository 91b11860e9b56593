/** Quiet hours: a window of the recipient's local day in which nothing is sent. Pure, and right on the days when clocks change. */
import { NotificationError } from '../errors.ts';
import type { Notification, QuietHours } from './notification.ts';

const MINUTE_MS = 60_000;
const DAY_MINUTES = 24 * 60;
/** More than any clock is ever changed by in one night. */
const CHANGE_MINUTES = 180;

/** The notification's own, or those of its user. */
export function quietHoursOf({ quietHours, recipient }: Notification): QuietHours | undefined {
  return quietHours ?? recipient.quietHours;
}

/** When the window is over that this time lies in. The time itself, where it lies in none. */
export function afterQuietHours({ from, to, timeZone }: QuietHours, atMs: number): number {
  const window = { from: minutesOf(from), to: minutesOf(to) };
  const local = localMinutes(timeZone, atMs);
  if (!isWithin(window, local)) return atMs;
  const wholeMinute = atMs - (atMs % MINUTE_MS);
  const leftMinutes = (window.to - local + DAY_MINUTES) % DAY_MINUTES;
  const endMs = wholeMinute + leftMinutes * MINUTE_MS;
  const isAsCounted =
    localMinutes(timeZone, endMs) === window.to &&
    isWithin(window, localMinutes(timeZone, endMs - MINUTE_MS));
  return isAsCounted ? endMs : endOnChange(window, timeZone, wholeMinute, leftMinutes);
}

/** The clocks change before the end: from shortly before the earliest possible end on, minute by minute. */
function endOnChange(
  window: Window,
  timeZone: string,
  wholeMinuteMs: number,
  leftMinutes: number,
): number {
  const begin = Math.max(0, leftMinutes - CHANGE_MINUTES);
  for (let minute = begin; minute <= leftMinutes + CHANGE_MINUTES; minute++) {
    const atMs = wholeMinuteMs + minute * MINUTE_MS;
    if (!isWithin(window, localMinutes(timeZone, atMs))) return atMs;
  }
  return wholeMinuteMs + leftMinutes * MINUTE_MS;
}

/** What is wrong with them, in words; undefined: nothing. */
export function quietHoursFault({ from, to, timeZone }: QuietHours): string | undefined {
  for (const time of [from, to]) {
    if (!/^([01]\d|2[0-3]):[0-5]\d$/.test(time)) {
      return `${JSON.stringify(time)} is not a time of day. Write it as 22:00.`;
    }
  }
  if (from === to) return `Quiet hours from ${from} to ${to} have no length. Leave them out.`;
  try {
    formatterOf(timeZone);
  } catch {
    return `There is no time zone ${JSON.stringify(timeZone)}. Use a name such as Europe/Berlin.`;
  }
  return undefined;
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
