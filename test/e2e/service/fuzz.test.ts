import { afterAll, beforeAll, expect, test } from 'vitest';
import fc from 'fast-check';
import { garbage, nearlyRight, odd } from './fuzz-arbitraries.ts';
import { Book } from './fuzz-book.ts';
import { type Answer, bytesOf, exchange, type Reply } from './fuzz-wire.ts';
import { RedriveProcess, TemporaryFolder } from './redrive-process.ts';

/** For each kind of request; longer where somebody goes hunting. */
const LOAD_MS = Number(process.env['REDRIVE_FUZZ_MS'] ?? 1500);
const TOGETHER = 8;
const END_AFTER_MS = 250;

let service: RedriveProcess;
let folder: TemporaryFolder;
let url: string;
let port: number;
const book = new Book();

beforeAll(async () => {
  folder = new TemporaryFolder();
  service = new RedriveProcess(['serve'], folder.path, {
    HTTP_PORT: '0',
    REDRIVE_LOG_FORMAT: 'json',
    // How often one may ask is not the subject here.
    REDRIVE_RATE_LIMIT: '100000',
  });
  url = await service.ready();
  port = Number(new URL(url).port);
});

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

test('bodies that are nearly right are taken or refused with a problem', async () => {
  await expectOfEach(nearlyRight, async (request) => {
    const reply = await exchange(port, bytesOf(request));
    book.note(request.body, reply);
    expectAnswer(reply);
  });
});

test('odd methods, paths, headers and lengths are answered, with a problem where they are refused', async () => {
  await expectOfEach(odd, async (request) => {
    const reply = await exchange(port, bytesOf(request), { endAfterMs: END_AFTER_MS });
    book.note(request.body, reply);
    // One that promised more than it had, and hung up.
    expectAnswerUnless(reply, 'nothing');
  });
});

test('what is hardly HTTP gets a problem, or nothing', async () => {
  await expectOfEach(garbage, async (bytes) => {
    const reply = await exchange(port, bytes, { endAfterMs: END_AFTER_MS });
    expectAnswerUnless(reply, 'nothing');
  });
});

test('after all of it the service lives, has logged no error, has what it took, and nothing that it refused', async () => {
  expect((await fetch(`${url}/health/live`)).status).toBe(200);
  expect(service.lines.filter((line) => /"level":"(error|fatal)"/.test(line))).toEqual([]);
  expect(service.err).toBe('');
  const { taken, refused, unanswered } = book;
  const all = new Set(await stored());
  expect(taken.size).toBeGreaterThan(0);
  expect(refused.size).toBeGreaterThan(0);
  expect([...taken].filter((id) => !all.has(id))).toEqual([]);
  expect([...refused].filter((id) => all.has(id))).toEqual([]);
  expect(all.size).toBeLessThanOrEqual(taken.size + unanswered);
});

/** Several at once, as long as there is time. */
async function expectOfEach<T>(
  arbitrary: fc.Arbitrary<T>,
  one: (value: T) => Promise<void>,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(arbitrary, { minLength: 1, maxLength: TOGETHER }), async (all) => {
      await Promise.all(all.map(one));
    }),
    { numRuns: 10_000, plugins: [fc.interruptAfterTimeLimit(LOAD_MS)] },
  );
}

function expectAnswerUnless(reply: Reply, none: 'nothing'): void {
  if (reply !== none) expectAnswer(reply);
}

function expectAnswer(reply: Reply): asserts reply is Answer {
  expect(reply).toBeTypeOf('object');
  const { status, headers, body } = reply as Answer;
  expect(status).toBeGreaterThanOrEqual(200);
  expect(status).toBeLessThan(500);
  if (status < 400) return;
  expect(headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
  // An answer to HEAD has none.
  if (body.length === 0) return;
  expect(JSON.parse(body.toString())).toMatchObject({ status, code: expect.any(String) });
}

async function stored(): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const response = await fetch(`${url}/api/v1/retries?limit=100${query}`);
    const page = (await response.json()) as Page;
    ids.push(...page.items.map(({ message_id: id }) => id));
    cursor = page.next_cursor;
  } while (cursor !== null);
  return ids;
}

interface Page {
  items: { message_id: string }[];
  next_cursor: string | null;
}
