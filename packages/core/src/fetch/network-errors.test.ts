import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { classify } from '../failure/classify.ts';
import { examine } from '../failure/evidence.ts';
import { retry } from '../retry.ts';

const table = readFileSync(new URL('./network-errors.ts', import.meta.url), 'utf8');
const networkMessages = [...table.matchAll(/^ {2}'(.*)',$/gm)].map(([, text = '']) => text);

const page = readFileSync(
  new URL('../../../../docs/reference/network-errors.md', import.meta.url),
  'utf8',
);
/** The cells of the page's table: runtime, message, where it was observed or read. */
const rows = [...page.matchAll(/^\| ([^|]+) \| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$/gm)].map(
  ([, runtime = '', message = '', , source = '']) => ({ runtime, message, source }),
);

/** Messages as they were seen, word for word. */
const seen: [string, string][] = [
  ['Chrome', 'Failed to fetch'],
  ['Chrome', 'Failed to fetch (example.com)'],
  ['Chrome, a body cut off', 'network error'],
  ['Firefox', 'NetworkError when attempting to fetch resource.'],
  ['Firefox with Sentry', 'NetworkError when attempting to fetch resource. (example.com)'],
  ['Firefox, a body cut off', 'Error in input stream'],
  ['Safari 17', 'Load failed'],
  ['Safari 17 with Sentry', 'Load failed (example.com)'],
  ['Safari 16', 'The Internet connection appears to be offline.'],
  ['Safari 16', 'The network connection was lost.'],
  ['React Native', 'Network request failed'],
  ['React Native', 'Network request timed out'],
  ['Node', 'fetch failed'],
  ['Node, a body cut off', 'terminated'],
  [
    'Deno 2.0',
    'error sending request for url (http://127.0.0.1:1/): client error (Connect): tcp connect error: Connection refused (os error 111)',
  ],
  [
    'Deno 2.3',
    'error sending request from 127.0.0.1:1 for http://127.0.0.1:2/ (127.0.0.1:2): client error (SendRequest): connection closed before message completed',
  ],
  ['Deno, a body cut off', 'error reading a body from connection'],
  ['Bun', ' A network error occurred.'],
  ['Workers', 'Network connection lost.'],
];

describe('a network error of any runtime', () => {
  it.each(seen)('is transient: %s, "%s"', (_, message) => {
    const expected = { class: 'transient', code: 'FETCH_FAILED' };
    expect(classify(new TypeError(message))).toMatchObject(expected);
  });

  it('gets another attempt', async () => {
    for (const message of networkMessages) {
      let calls = 0;
      const work = () => {
        calls += 1;
        if (calls === 1) throw new TypeError(message.replace('*', 'x'));
        return calls;
      };
      expect(await retry(work, { base: 0 }), message).toBe(2);
    }
  });

  it.each([
    'Failed to fetch dynamically imported module: /a.js',
    'the network error',
    "Cannot read properties of undefined (reading 'terminated')",
    'Failed to fetch x',
    'terminated.',
    'Error in input streams',
    'Could not connect to the server?',
    'fetch failed (a (b))',
    'Invalid URL',
  ])('is not a mistake in the program: "%s"', (message) => {
    expect(classify(new TypeError(message)).class).toBe('technical');
  });

  it('is recognised in time that grows with the length of a hostile message', () => {
    const long = `error reading a body from connection${' ('.repeat(500_000)}`;
    expect(examine(new TypeError(`Load failed${long}`)).class).toBe('technical');
  });

  it('was surely not executed where Deno had no connection', () => {
    const words = 'error sending request for url (x): client error (Connect): dns error';
    const cause = new Error(words);
    expect(examine(new TypeError(words)).notExecuted).toBe(true);
    expect(examine(new TypeError('fetch failed', { cause })).notExecuted).toBe(true);
    const sent = new Error('error sending request for url (x): client error (SendRequest): eof');
    expect(examine(new TypeError('fetch failed', { cause: sent }))).not.toHaveProperty(
      'notExecuted',
    );
  });

  it.each([
    ['ConnectionRefused', true],
    ['FailedToOpenSocket', true],
    ['ConnectionClosed', undefined],
  ])('has the code %s on Bun before 1.3', (code, notExecuted) => {
    const failure = examine(Object.assign(new Error('x'), { code }));
    expect(failure).toMatchObject({ class: 'transient', code });
    expect(failure.notExecuted).toBe(notExecuted);
  });
});

describe('the page of network errors', () => {
  it('has each message of the list, and no other', () => {
    expect(networkMessages.length).toBeGreaterThan(20);
    expect(rows.map((row) => row.message).sort()).toEqual([...networkMessages].sort());
  });

  it('names a source for each', () => {
    for (const { source, message } of rows) expect(source.trim(), message).not.toBe('');
  });
});
