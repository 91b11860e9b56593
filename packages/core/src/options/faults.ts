import type { Field } from './fields.ts';

/** One entry of a list of names. */
export type Name = { kind: 'name'; known: readonly string[] };

/** What was wanted where something else stood. */
export type Wanted =
  | Field
  | Name
  | { kind: 'pair' | 'decorrelated' }
  | { kind: 'object'; isPolicy?: boolean }
  | { kind: 'known' | 'fixed'; name: string; near: string | undefined; isPolicy?: boolean };

/** The sentence for one fault: what was found, what is wanted, and what may have been meant. */
export function explainFault(wanted: Wanted, value: unknown): string {
  const found = show(value);
  switch (wanted.kind) {
    case 'integer':
    case 'number':
      return `${found} is not ${wanted.kind === 'integer' ? 'a whole number' : 'a number'} from ${wanted.min} to ${wanted.max}.${value === Infinity && wanted.max === NO_LIMIT ? noLimit : ''}`;
    case 'duration':
      return `${found} is not a duration. Write ms as a number, or a text such as '250ms', '2s', '5m', '1h', '1d', up to 100 years${wanted.min > 0 ? ` and at least ${wanted.min} ms` : ''}.`;
    case 'durations':
      return `${found} is not a list of 1 to ${wanted.max} durations.`;
    case 'boolean':
      return `${found} is not true or false.`;
    case 'choice':
      return `${found} is not one of ${wanted.of.join(', ')}.${didYouMean(nearest(value, wanted.of))}`;
    case 'name':
      return `${found} is not a failure class (${wanted.known.join(', ')}), code, status or error name, as a text of at most 200 characters ('503').${didYouMean(nearest(value, wanted.known))}`;
    case 'names':
      return `${found} is not a list of at most 100 failure classes, codes, statuses or error names, as texts.`;
    case 'objects':
      return `${found} is not an object of at most ${wanted.max} objects by class, code, status or error name.`;
    case 'object':
      return `${found} is not an object of options${wanted.isPolicy ? ' such as { maxAttempts: 3 }' : ''}.`;
    case 'pair':
      return `a schedule and the strategy 'schedule' belong together: give both, or leave both out.`;
    case 'decorrelated':
      return `the jitter 'decorrelated' goes with the strategy 'exponential' only, not with ${found}.`;
    case 'fixed':
      return 'cannot be overridden for some failures: it belongs to the whole policy.';
    case 'known':
      return unknownField(wanted.name, wanted.near, wanted.isPolicy ?? false);
  }
}

function unknownField(name: string, near: string | undefined, isPolicy: boolean): string {
  const example = isPolicy ? liveExample(name) : undefined;
  if (example !== undefined)
    return `is not a field of a policy. Write it in the runtime, the argument after the policy: retry(fn, policy, { ${example} }).`;
  const more = isPolicy && Object.hasOwn(advice, name) ? advice[name] : '';
  return `there is no such field.${didYouMean(near)}${more}`;
}

/** How to write in the runtime of a call what has this name here or in another library; undefined for all else. */
export function liveExample(name: string): string | undefined {
  if (liveNames.includes(name)) return name;
  const lower = name.toLowerCase();
  return Object.hasOwn(liveExamples, lower) ? liveExamples[lower] : undefined;
}

/** The option that was probably meant, if any. */
export function nearest(word: unknown, options: readonly string[]): string | undefined {
  if (typeof word !== 'string') return undefined;
  const lower = word.toLowerCase().replace(/[_-]/g, '');
  const alias = [aliases[lower.replace(/ms$/, '')]].flat().find((each) => options.includes(each!));
  if (alias !== undefined) return alias;
  let best: string | undefined;
  let bestDistance = Math.min(3, Math.ceil(word.length / 2));
  for (const option of options) {
    const distance = editDistance(lower, option.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [option, distance];
  }
  return best;
}

/** What goes in the runtime of a call. */
const liveNames: readonly string[] =
  'signal key classify beforeRetry budget breaker bulkhead on clock random unref parent'.split(' ');

const verdict = 'retryIf: (error, attempt) => true';
const listener = (name: string) => `on: { ${name}: ({ error, attempt }) => {} }`;

/** The same in the words of others, in small letters. */
const liveExamples: Readonly<Record<string, string>> = {
  retryif: verdict,
  shouldretry: verdict,
  retrywhen: verdict,
  retry: verdict,
  onretry: listener('wait'),
  onfailedattempt: listener('wait'),
  ongiveup: listener('giveUp'),
  abortsignal: 'signal',
  circuitbreaker: 'breaker',
  idempotencykey: 'key',
};

const NO_LIMIT = 1_000_000_000;
const noLimit = ' For no limit write 1_000_000_000.';

/** For what others have and a policy does not. */
const advice: Readonly<Record<string, string>> = {
  forever: noLimit,
  delayFirstAttempt: ' The first attempt starts at once: wait before you call retry.',
};

/** What the same thing is called elsewhere; more than one where it means another thing in another place. */
const aliases: Record<string, string | readonly string[]> = {
  retries: 'maxAttempts',
  attempts: 'maxAttempts',
  numofattempts: 'maxAttempts',
  maxretries: 'maxAttempts',
  tries: 'maxAttempts',
  forever: 'maxAttempts',
  times: 'maxAttempts',
  delay: 'base',
  basedelay: 'base',
  mintimeout: 'base',
  mindelay: 'base',
  startingdelay: 'base',
  initialdelay: 'base',
  maxtimeout: 'cap',
  maxdelay: 'cap',
  max: 'cap',
  factor: 'multiplier',
  timemultiple: 'multiplier',
  exponent: 'multiplier',
  backoff: 'strategy',
  randomize: 'jitter',
  timeout: 'attemptTimeout',
  maxretrytime: 'deadline',
  ttl: 'deadline',
  all: 'any',
  halfopenafter: 'openFor',
  resettimeout: 'openFor',
  threshold: 'failures',
  shouldretry: 'retryIf',
  retrywhen: 'retryIf',
  retry: ['retryIf', 'wait'],
  onretry: ['on', 'wait'],
  onfailedattempt: ['on', 'wait'],
  ongiveup: ['on', 'giveUp'],
  events: 'on',
  listener: 'on',
  listeners: 'on',
  failure: 'giveUp',
  abortsignal: 'signal',
  circuitbreaker: 'breaker',
  idempotencykey: 'key',
};

/** The end of a sentence; empty where nothing is near. */
export function didYouMean(near: string | undefined): string {
  if (near === undefined) return '';
  const note = near === 'maxAttempts' ? ' It counts the first execution too.' : '';
  return ` Did you mean '${near}'?${note}`;
}

/** A value for a sentence, in at most 60 characters. */
export function show(value: unknown): string {
  let text: string;
  if (typeof value === 'string') text = `'${value}'`;
  else if (Array.isArray(value)) text = `a list of ${value.length}`;
  else if (typeof value === 'function') text = 'a function';
  else if (typeof value === 'object' && value !== null) {
    const tag = Object.prototype.toString.call(value);
    text = tag === '[object Object]' ? 'an object' : tag;
  } else text = String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/** Levenshtein's distance with swaps of neighbours, for short words. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return 3;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + same);
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, before[j - 2]! + 1);
      row.push(cost);
    }
    [before, last] = [last, row];
  }
  return last[b.length]!;
}

const MAX_SAID = 1024;
/** PostgreSQL keeps no NUL, and UTF-8 has no half of a surrogate pair. */
const unkeepable = /[\0\p{Surrogate}]/gu;

/** What was thrown, as a short text that every store can keep. It does not throw, whatever the getters of an error do. */
export function saidBy(error: unknown): string {
  let said = textIn(error, 'message');
  try {
    said ??= String(error);
  } catch {
    said = 'something that has no text';
  }
  return said.slice(0, MAX_SAID).replace(unkeepable, '\u{fffd}');
}

/** A property where it is a text. A getter that throws has none. */
export function textIn(value: unknown, name: string): string | undefined {
  try {
    const found = (Object(value) as Record<string, unknown>)[name];
    return typeof found === 'string' ? found : undefined;
  } catch {
    return undefined;
  }
}
