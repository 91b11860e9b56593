/** What a newcomer tries: half an id, another word, a slip in a status. */
import { describe, expect, it } from 'vitest';
import { stage } from '../stage.test.ts';

const one = 'aaaa0000-0000-4000-8000-000000000001';
const two = 'aaaa0000-0000-4000-8000-000000000002';
const three = 'bbbb0000-0000-4000-8000-000000000003';

async function withTasks() {
  const all = await stage();
  for (const id of [one, two, three]) {
    await all.redrive(['submit', 'http://127.0.0.1:9/later', '1', '--id', id, '--delay', '2h']);
  }
  return all;
}

describe('The beginning of an id', () => {
  it('is enough where one task has it', async () => {
    const { redrive } = await withTasks();
    expect((await redrive('show bbbb')).out).toContain(three);
    expect((await redrive('expedite BBBB0000')).out).toContain(three);
    expect((await redrive(`cancel ${one.slice(0, -2)}01`)).out).toBe(`cancelled  ${one}\n`);
  });

  it('is answered with those that have it, or with what to give', async () => {
    const { redrive } = await withTasks();
    const { code, err } = await redrive('show aaaa');
    expect(code).toBe(1);
    expect(err).toContain("2 tasks have an id that begins with 'aaaa'. Give more of it:");
    expect(err).toContain(`${one}  http://127.0.0.1:9/later, pending`);
    expect(err).toContain(two);
    expect((await redrive('show cccc')).err).toContain('Give the whole id, as redrive list shows');
    // One that is refused holds up no other.
    const cancelled = await redrive('cancel aaaa bbbb');
    expect(cancelled.err).toContain('2 tasks have an id');
    expect(cancelled.out).toBe(`cancelled  ${three}\n`);
    expect(cancelled.code).toBe(1);
  });
});

describe('redrive submit', () => {
  it('takes --delay for --in, and not both', async () => {
    const { redrive, json } = await withTasks();
    const [task] = await json(`show ${one}`);
    const { due_at: dueAt } = Object(task) as { due_at: string };
    const dueMs = Date.parse(dueAt) - Date.now();
    expect(dueMs).toBeGreaterThan(7_000_000);
    const both = await redrive('submit http://127.0.0.1:9/ 1 --in 1h --delay 1h');
    expect(both).toMatchObject({ code: 2, err: expect.stringContaining('the same as --in') });
  });

  it('lists the faults with their code', async () => {
    const { redrive } = await stage();
    const { err } = await redrive(['submit', 'nowhere', '1', '--id', 'x']);
    expect(err).toMatch(
      /^The request has 2 faults \(INVALID_REQUEST\):\n {2}\/\w+: .+\n {2}\/\w+: /,
    );
  });
});

it('lanes say what their states mean', async () => {
  const { redrive } = await withTasks();
  const { out } = await redrive('lanes');
  expect(out).toContain('closed: deliveries run as usual; the breaker is closed.');
  expect(out).not.toContain('open: no deliveries');
});
