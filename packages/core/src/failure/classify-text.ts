import type { Failure, FailureClass } from './failure.ts';

/**
 * A rule of the user's own, as JSON. It matches when each kind of condition it lists is met by any
 * of its values; one that lists no condition matches nothing.
 */
export interface ClassifyRule {
  codes?: readonly string[];
  /** The error's name or that of a class it extends. */
  names?: readonly string[];
  statuses?: readonly number[];
  /** Whole words or phrases of the error's text, in any case. */
  words?: readonly string[];
  class: FailureClass;
  /** Replaces the failure's code. */
  code?: string;
  /** The failure consumes no attempt. */
  counted?: false;
}

/** What a text speaks for, and the word of it that said so, in lower case. */
export interface TextMatch {
  class: FailureClass;
  word: string;
}

/** The class that a text's words speak for: the user's rules first, then the built-in list. */
export function classifyText(
  text: string,
  rules: readonly ClassifyRule[] = [],
): TextMatch | undefined {
  const searched = searchable(text);
  const rule = rules.find((each) => matches(each, {}, searched));
  // Of a text nothing but words can match, so a rule that does has some.
  return rule ? search(searched, [[rule.class, anyOf(rule.words as string[])]]) : spokenClass(text);
}

/** `classifyText` without rules: kept apart so that a bundle may go without them. */
export function spokenClass(text: string): TextMatch | undefined {
  builtIn ??= lists.map(([name, body]) => [name, whole(body.replaceAll(' ', '\\s+'))]);
  return search(searchable(text), builtIn);
}

/** The first rule that fits a failure and the text of its error. */
export function findRule(
  rules: readonly ClassifyRule[],
  failure: Failure,
  text: string,
): ClassifyRule | undefined {
  const searched = searchable(text);
  return rules.find((rule) => matches(rule, failure, searched));
}

/** The system codes that count inside a text as well. */
const systemWords =
  'ETIMEDOUT|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|EPIPE|EAI_AGAIN|ENOMEM|EMFILE';

const letter = '[\\p{L}\\p{M}\\p{N}_]';
const filler = '[\\s\\p{P}]*';

// A number is a status only alone or behind a word that says so: "order 503 already exists" has
// none. Looked at backwards from the number, so that no run of separators is walked twice.
const asStatus =
  `(?<=^${filler}...(?=${filler}$)|` +
  `(?<!${letter})(?:status|code|http(?:/\\d+(?:\\.\\d+)?)?)[\\s:=]+...)`;

const jsErrors = '(?:Type|Reference|Range|Syntax)Error';

// In the order they are asked.
const lists: readonly [FailureClass, string][] = [
  [
    'transient',
    `${systemWords}|timeout|timed out|connection (?:terminated|refused|closed|lost)|` +
      'too many requests|rate limit|throttled|resource temporarily unavailable|' +
      'service unavailable|try again later|circuit (?:open|breaker)|' +
      `(?:408|425|429|50[234])${asStatus}`,
  ],
  [
    'business',
    'validation|schema|business rule|duplicate|already (?:exists|submitted)|unauthorized|' +
      `forbidden|(?:40[01349]|422)${asStatus}`,
  ],
  [
    'technical',
    `${jsErrors}|is not a function|cannot read propert(?:y|ies)|unexpected token|assertion|` +
      'invariant|unreachable|out of memory',
  ],
];

const longestText = 8192;

type Patterns = readonly [FailureClass, RegExp][];

let builtIn: Patterns | undefined;
let splitName: RegExp | undefined;
const patterns = new WeakMap<readonly string[], RegExp>();

function search(searched: string, asked: Patterns): TextMatch | undefined {
  for (const [name, pattern] of asked) {
    const word = pattern.exec(searched)?.[0];
    if (word) return { class: name, word: word.toLowerCase().replace(/\s+/g, ' ') };
  }
  return undefined;
}

function matches(rule: ClassifyRule, failure: Partial<Failure>, searched: string): boolean {
  const { codes, names, statuses, words } = rule;
  return (
    !!(codes || names || statuses || words) &&
    (!codes || codes.includes(failure.code as string)) &&
    (!names || names.some((name) => failure.names?.includes(name))) &&
    (!statuses || statuses.includes(failure.status as number)) &&
    (!words || anyOf(words).test(searched))
  );
}

function anyOf(words: readonly string[]): RegExp {
  let pattern = patterns.get(words);
  if (!pattern) {
    const body = words
      .map((word) =>
        word
          .trim()
          .replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
          .replace(/\s+/g, '\\s+'),
      )
      .filter(Boolean)
      .join('|');
    patterns.set(words, (pattern = whole(body || '(?!)')));
  }
  return pattern;
}

function whole(body: string, flags = 'iu'): RegExp {
  return new RegExp(`(?<!${letter})(?:${body})(?!${letter})`, flags);
}

/** The text's beginning, followed by the words that its `ServiceTimeoutException`s are made of. */
function searchable(text: string): string {
  // The underscore keeps a word that was cut in two from counting as a whole one.
  const start = text.length > longestText ? `${text.slice(0, longestText)}_` : text;
  splitName ??= whole(`(?!${jsErrors}(?!${letter}))${letter}+(?:Error|Exception)`, 'gu');
  return (start.match(splitName) ?? []).reduce(
    (all, name) =>
      `${all}\0${name.replace(/(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, ' ')}`,
    start,
  );
}
