/** A hundred years: nobody waits longer, and `now` plus this is still a valid date. */
const longestMs = 3.2e12;

/** The three shapes of RFC 9110. `Date.parse` alone would take "foo 5" for a day in May. */
const httpDate = /^[a-z]{3,9},? [\w -]+ \d\d:\d\d:\d\d (?:(GMT)|\d{4})$/i;

/**
 * How long the response's headers ask to wait, in whole ms, or undefined where they do not say.
 * Dates are measured against the response's own `Date`, since the two clocks may differ; `nowMs`
 * stands in where it has none. Rate-limit resets count only on a 429 or a 503.
 */
export function parseRetryAfter(
  headers: unknown,
  nowMs?: number,
  status?: number,
): number | undefined {
  if (!headers) return undefined;
  const get = (name: string) => header(headers, name);
  const until = (dateMs: number) => {
    const sentMs = parseDate(get('date'));
    return Math.max(0, dateMs - (sentMs >= 0 ? sentMs : (nowMs ?? Number.NaN)));
  };
  const after = get('retry-after');
  let waitMs =
    wholeMs(parseNumber(get('retry-after-ms'))) ??
    wholeMs(parseNumber(after) * 1000) ??
    wholeMs(until(parseDate(after)));
  if (status === 429 || status === 503) {
    for (const prefix of ['ratelimit-', 'x-ratelimit-']) {
      const reset = parseNumber(get(`${prefix}reset`));
      // Some servers send a reset with every answer: while something remains it is no guidance.
      if (Number(get(`${prefix}remaining`)) === 0) {
        waitMs ??= wholeMs(
          reset > 1e12 ? until(reset) : reset > 1e9 ? until(reset * 1000) : reset * 1000,
        );
      }
    }
  }
  return waitMs;
}

/** A wait from outside as whole ms, rounded up so that nobody comes back early. */
export function wholeMs(ms: unknown): number | undefined {
  return typeof ms === 'number' && ms >= 0 ? Math.min(Math.ceil(ms), longestMs) : undefined;
}

/** A number without sign or exponent, else NaN. */
export function parseNumber(text: string): number {
  return text && /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
}

/** One header of a Headers, a Map, gRPC metadata or a plain object; '' when there is none. */
export function header(headers: unknown, name: string): string {
  if (!headers) return '';
  try {
    const source = Object(headers) as { get?: (name: string) => unknown };
    const value =
      source.get?.(name) ??
      Object.entries(source instanceof Map ? Object.fromEntries<unknown>(source) : source).find(
        ([key]) => key.toLowerCase() === name,
      )?.[1];
    const first = Array.isArray(value) ? (value[0] as unknown) : value;
    return typeof first === 'string' || typeof first === 'number' ? String(first).trim() : '';
  } catch {
    return '';
  }
}

function parseDate(text: string): number {
  const shape = httpDate.exec(text);
  // The asctime shape names no zone and would be read as local time.
  return shape ? Date.parse(shape[1] ? text : `${text} GMT`) : Number.NaN;
}
