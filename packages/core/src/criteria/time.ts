/** The last ms that a `Date` can hold; past it `toISOString` throws. */
export const LAST_DATE_MS = 8_640_000_000_000_000;

/** No ISO-8601 time that anyone sends is longer; what is longer is not worth scanning. */
const MAX_LENGTH = 64;
const MINUTE_MS = 60_000;
/** From 1 March of the year 0 to 1 January 1970. */
const DAYS_BEFORE_EPOCH = 719_468;

/**
 * The epoch ms of an ISO-8601 date and time, NaN when the text is none.
 *
 * Read here rather than by `Date.parse`, which rolls 30 February over into March, takes many texts that are
 * not ISO-8601, and reads a time without a zone in the zone of the machine: two instances would disagree.
 * Accepted: `YYYY-MM-DDTHH:mm`, then seconds, then a fraction of any length, then `Z`, an offset (`+01:00`,
 * `+0100`, `+01`) or nothing, which is read as UTC; `hasZone` tells the difference. A fraction of a ms is kept:
 * many languages write microseconds, and cutting them from the last attempt would say yes too early.
 */
export function parseIsoTime(text: string): number {
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2);
  const month = twoDigits(text, 5);
  const day = twoDigits(text, 8);
  const hour = twoDigits(text, 11);
  const minute = twoDigits(text, 14);
  const shaped = text[4] === '-' && text[7] === '-' && text[10] === 'T' && text[13] === ':';
  // A field that is not two digits is NaN, and no comparison with NaN holds.
  const inRange = month >= 1 && month <= 12 && day >= 1 && day <= 31 && hour <= 23 && minute <= 59;
  if (!shaped || !inRange || text.length > MAX_LENGTH) return Number.NaN;
  if (day > 28 && day > daysInMonth(year, month)) return Number.NaN;

  let at = 16;
  let second = 0;
  let ms = 0;
  if (text[at] === ':') {
    second = twoDigits(text, 17);
    if (!(second <= 59)) return Number.NaN;
    at = 19;
    if (text[at] === '.' || text[at] === ',') {
      const start = at + 1;
      let placeMs = 100;
      for (at = start; isDigit(text.charCodeAt(at)); at++) {
        ms += (text.charCodeAt(at) - 48) * placeMs;
        placeMs = Math.floor(placeMs / 10);
      }
      if (at === start) return Number.NaN;
      if (at > start + 3) ms += Number(`0.${text.slice(start + 3, at)}`);
    }
  }
  const minutes = (daysSinceEpoch(year, month, day) * 24 + hour) * 60 + minute;
  return (minutes - zoneOffsetMinutes(text, at)) * MINUTE_MS + second * 1000 + ms;
}

/** Whether a text that `parseIsoTime` accepts names its zone. */
export function hasZone(text: string): boolean {
  return text.endsWith('Z') || text.includes('+') || text.lastIndexOf('-') > 10;
}

function zoneOffsetMinutes(text: string, at: number): number {
  const sign = text[at];
  if (sign === undefined) return 0;
  if (sign === 'Z') return at + 1 === text.length ? 0 : Number.NaN;
  if (sign !== '+' && sign !== '-') return Number.NaN;
  const hours = twoDigits(text, at + 1);
  const minutesAt = text[at + 3] === ':' ? at + 4 : at + 3;
  const bare = text.length === at + 3;
  const minutes = bare ? 0 : twoDigits(text, minutesAt);
  const complete = bare || text.length === minutesAt + 2;
  if (!complete || !(hours <= 23 && minutes <= 59)) return Number.NaN;
  return (sign === '-' ? -1 : 1) * (hours * 60 + minutes);
}

function twoDigits(text: string, at: number): number {
  const tens = text.charCodeAt(at);
  const ones = text.charCodeAt(at + 1);
  return isDigit(tens) && isDigit(ones) ? (tens - 48) * 10 + ones - 48 : Number.NaN;
}

function isDigit(charCode: number): boolean {
  return charCode >= 48 && charCode <= 57;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Counts years from March, which puts the leap day last and makes the months before it regular. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const years = month > 2 ? year : year - 1;
  const months = (month + 9) % 12;
  const leapDays = Math.floor(years / 4) - Math.floor(years / 100) + Math.floor(years / 400);
  const daysToMonth = Math.floor((153 * months + 2) / 5);
  return years * 365 + leapDays + daysToMonth + day - 1 - DAYS_BEFORE_EPOCH;
}
