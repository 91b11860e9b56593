import { type Conditions, scalarText } from './read-document.ts';

/** Whether a rule matches a context. `status` is the context's status as `statusText` gives it. */
export type Matcher = (
  context: Readonly<Record<string, unknown>>,
  status: string | undefined,
) => boolean;

/** The conditions of a rule, compiled: keys are ANDed, the values of a key ORed. */
export function matcherOf(conditions: Conditions): Matcher {
  const statuses: ReadonlySet<string>[] = [];
  const others: { key: string; values: ReadonlySet<string> }[] = [];
  for (const [key, values] of conditions) {
    if (key === 'status') statuses.push(new Set(values.map(canonicalStatus)));
    else others.push({ key, values: new Set(values) });
  }
  const [wanted] = statuses;
  return (context, status) => {
    if (wanted && (status === undefined || !matchesStatus(wanted, status))) return false;
    for (const { key, values } of others) {
      const text = Object.hasOwn(context, key) ? scalarText(context[key]) : undefined;
      if (text === undefined || !values.has(text)) return false;
    }
    return true;
  };
}

/** The status of a context as rules compare it, or undefined where it has none. */
export function statusText(status: unknown): string | undefined {
  const text = scalarText(status);
  return text === undefined ? undefined : canonicalStatus(text);
}

/** `rate_limit` and `429` are the same status. */
function canonicalStatus(status: string): string {
  return status === 'rate_limit' ? '429' : status;
}

function matchesStatus(wanted: ReadonlySet<string>, status: string): boolean {
  if (wanted.has(status)) return true;
  const family = familyOf(status);
  return family !== undefined && wanted.has(family);
}

/** `5xx` for 503, `4xx` for 404. */
function familyOf(status: string): '4xx' | '5xx' | undefined {
  if (status.length !== 3 || !isDigit(status, 1) || !isDigit(status, 2)) return undefined;
  const first = status.charCodeAt(0);
  return first === 0x34 ? '4xx' : first === 0x35 ? '5xx' : undefined;
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0x30 && code <= 0x39;
}

/** Whether every context that `later` matches is matched by `earlier` too. */
export function covers(earlier: Conditions, later: Conditions): boolean {
  return earlier.every(([key, values]) => {
    const theirs = later.find(([name]) => name === key)?.[1];
    if (!theirs) return false;
    if (key !== 'status') return theirs.every((value) => values.includes(value));
    return theirs.every((value) => {
      const status = canonicalStatus(value);
      const family = familyOf(status);
      return values.some((each) => canonicalStatus(each) === status || each === family);
    });
  });
}
