/**
 * What each library does, by trait: the one source of the README's table and of the verdicts that
 * `peers.test.ts` holds against experiments.
 */

export const libraries = [
  'Redrive',
  'p-retry',
  'cockatiel',
  'async-retry',
  'exponential-backoff',
  'effect',
] as const;

export type Library = (typeof libraries)[number];

/**
 * `yes`: with the library's own options, or its own parts put together. `partly`: some parts of the trait.
 * `no`: only by code of one's own.
 */
export type Verdict = 'yes' | 'partly' | 'no';

/** The versions that were measured: another one has to be measured anew. */
export const versions: Record<Exclude<Library, 'Redrive'>, string> = {
  'p-retry': '9.0.0',
  cockatiel: '4.0.0',
  'async-retry': '1.3.3',
  'exponential-backoff': '3.1.3',
  effect: '4.1.0',
};

export interface Row {
  trait: string;
  /** What the trait consists of. All of them: yes. None: no. */
  parts: readonly string[];
  verdicts: Readonly<Record<Library, Verdict>>;
  notes: Readonly<Partial<Record<Library, Note>>>;
}

export interface Note {
  /** The parts that are missing; none for a yes that needs a word. */
  lacks: readonly string[];
  text: string;
}

export const rows = {
  abort: row(
    'An abort ends a wait at once, and nothing more is started',
    ['waitEnds', 'nothingStarts'],
    ['yes', 'yes', 'no', 'no', 'no', 'yes'],
  ),
  attemptTimeout: row(
    'A timeout per attempt that aborts the signal of that attempt',
    ['attemptEnds', 'signalAborts'],
    ['yes', 'no', 'yes', 'no', 'no', 'yes'],
  ),
  deadline: row(
    'One deadline over attempts and waits; what cannot fit is neither started nor waited for',
    ['retryingStops', 'attemptEnds', 'nothingStartsAfter', 'noPointlessWait'],
    ['yes', 'partly', 'partly', 'partly', 'no', 'partly'],
    {
      'p-retry': {
        lacks: ['noPointlessWait'],
        text: 'with `AbortSignal.timeout` as its signal; a wait that cannot help is still waited',
      },
      cockatiel: {
        lacks: ['nothingStartsAfter', 'noPointlessWait'],
        text: 'a `timeout` around the retry rejects in time, but behind it the wait goes on and one more attempt starts',
      },
      'async-retry': {
        lacks: ['attemptEnds', 'nothingStartsAfter', 'noPointlessWait'],
        text: '`maxRetryTime` is looked at after a failure only',
      },
      effect: {
        lacks: ['noPointlessWait'],
        text: '`Effect.timeout` around the retry; a wait that cannot help is still waited',
      },
    },
  ),
  budget: row(
    'A retry budget shared by calls: failures take from it, successes give back',
    ['bounded', 'refilled'],
    ['yes', 'no', 'no', 'no', 'no', 'partly'],
    {
      effect: {
        lacks: ['refilled'],
        text: 'a shared `RateLimiter` can bound retries by time; successes give nothing back',
      },
    },
  ),
  retryAfter: row(
    '`Retry-After` (seconds or date) is a floor, from a response or any error with headers',
    ['seconds', 'date', 'anyError'],
    ['yes', 'no', 'no', 'no', 'no', 'partly'],
    {
      effect: { lacks: ['anyError'], text: 'for the responses of its own HTTP client' },
    },
  ),
  onResult: row('Retry on a result', ['retried'], ['yes', 'no', 'yes', 'no', 'no', 'yes']),
  jitterAtCap: row(
    'The cap comes before the jitter, so delays at the cap stay spread',
    ['someJitter', 'usualJitter'],
    ['yes', 'no', 'partly', 'no', 'yes', 'yes'],
    {
      cockatiel: {
        lacks: ['usualJitter'],
        text: 'with its full or half jitter; its default puts over 90 % of the delays on the cap',
      },
    },
  ),
  breaker: row(
    'A circuit breaker that costs no attempts while it is open',
    ['callsNothing', 'costsNothing'],
    ['yes', 'no', 'yes', 'no', 'no', 'yes'],
    {
      cockatiel: { lacks: [], text: 'with a second retry for `BrokenCircuitError` in between' },
      effect: { lacks: [], text: 'with a second retry for `CircuitBreakerError` in between' },
    },
  ),
  ports: row(
    'Clock and randomness can be handed in, without mocks',
    ['clock', 'random'],
    ['yes', 'no', 'no', 'no', 'no', 'yes'],
  ),
  data: row(
    'The policy is JSON: wrong values and misspelt names are refused, and it has a fingerprint',
    ['refusesValues', 'refusesNames', 'fingerprint'],
    ['yes', 'partly', 'no', 'no', 'no', 'no'],
    {
      'p-retry': {
        lacks: ['refusesNames', 'fingerprint'],
        text: 'wrong values are refused, misspelt names are not',
      },
    },
  ),
  replay: row(
    'A decision can be recomputed from its record, since jitter derives from a key',
    ['sameKeySameDelays', 'fromItsRecord'],
    ['yes', 'no', 'no', 'no', 'no', 'partly'],
    {
      effect: {
        lacks: ['fromItsRecord'],
        text: '`Random.withSeed` repeats the delays of a whole call, not one decision',
      },
    },
  ),
  history: row(
    'The final error has the errors of its attempts (the last 50)',
    ['allErrors'],
    ['yes', 'no', 'no', 'no', 'no', 'no'],
  ),
  nested: row(
    'A nested call leaves the retrying to the outer one: 3 in 3 makes 3, not 9',
    ['leftToOuter'],
    ['yes', 'no', 'no', 'no', 'no', 'no'],
    { Redrive: { lacks: [], text: 'when it is handed its `parent`' } },
  ),
  bugs: row(
    'By default bugs (`TypeError`, `ReferenceError`) are not retried, network errors are',
    ['typeErrors', 'otherBugs', 'inAsyncFunctions'],
    ['yes', 'partly', 'no', 'no', 'no', 'partly'],
    {
      'p-retry': { lacks: ['otherBugs'], text: '`TypeError` only' },
      effect: {
        lacks: ['inAsyncFunctions'],
        text: 'in code written as effects, where a throw is a defect; not in a promise',
      },
    },
  ),
  bodies: row(
    'A `Response` that is retried as a result has its body cancelled',
    ['cancelled'],
    ['yes', 'no', 'no', 'no', 'no', 'yes'],
    {
      effect: { lacks: [], text: 'with `HttpClient.withScope` and a scope per attempt' },
    },
  ),
  signal: row(
    'A fresh signal per attempt, never aborted after success',
    ['fresh', 'keptAfterSuccess'],
    ['yes', 'no', 'yes', 'no', 'no', 'yes'],
    {
      cockatiel: { lacks: [], text: 'inside a `timeout` with `abortOnReturn: false`' },
    },
  ),
  longWaits: row(
    'Waits longer than 24.8 days',
    ['notAtOnce', 'inFull'],
    ['yes', 'partly', 'no', 'no', 'no', 'yes'],
    {
      'p-retry': { lacks: ['inFull'], text: 'cut to 24.8 days' },
    },
  ),
} satisfies Record<string, Row>;

export type Trait = keyof typeof rows;

/** The table for the README, with its notes below it. Columns are padded, as a formatter would have them. */
export function peersTable(): string {
  const notes: string[] = [];
  const cells = Object.values<Row>(rows).map((one) => [
    one.trait,
    ...libraries.map((library) => {
      const note = one.notes[library];
      if (!note) return one.verdicts[library];
      notes.push(`${notes.length + 1}. ${library}: ${note.text}.`);
      return `${one.verdicts[library]} <sup>${notes.length}</sup>`;
    }),
  ]);
  const measured = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const legend =
    '`yes`: with its own options, or its own parts put together. `partly`: some of it. ' +
    `\`no\`: only by code of your own. Measured with ${measured.join(', ')}.`;
  return [...aligned([['', ...libraries], ...cells]), '', legend, '', ...notes, ''].join('\n');
}

function row(
  trait: string,
  parts: readonly string[],
  verdicts: readonly [Verdict, Verdict, Verdict, Verdict, Verdict, Verdict],
  notes: Row['notes'] = {},
): Row {
  const byLibrary = libraries.map((library, index) => [library, verdicts[index]] as const);
  return { trait, parts, verdicts: Object.fromEntries(byLibrary) as Row['verdicts'], notes };
}

function aligned(lines: readonly (readonly string[])[]): string[] {
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(3, ...lines.map((cells) => (cells[column] ?? '').length)),
  );
  const [head = '', ...body] = lines.map(
    (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`,
  );
  return [head, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...body];
}
