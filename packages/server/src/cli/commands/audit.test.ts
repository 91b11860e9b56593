import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AuditEvent } from 'redrive';
import { describe, expect, it } from 'vitest';
import { answering, call, id, type Stage, stage, tempFolder } from '../stage.test.ts';

describe('redrive audit', () => {
  it('lists what was decided', async () => {
    const scene = await stage();
    expect(
      (await scene.redrive('audit list --message 00000000-0000-4000-8000-00000000000f')).out,
    ).toContain('There are none.');
    await decide(scene);
    const { out } = await scene.redrive('audit list --type retry_attempt', { columns: 200 });
    expect(out).toMatch(/^WHEN +EVENT +OPERATION/);
    expect(out).toMatch(/^(?:now|\S+ s ago) +retry_attempt +\S+ +1 +again in .* s, HTTP_503/m);
    expect(await scene.json('audit list --type retry_attempt')).toMatchObject([
      { event_type: 'retry_attempt' },
    ]);
  });

  it('finds that every decision of the server comes out the same', async () => {
    const scene = await stage();
    await decide(scene);
    const { out, code } = await scene.redrive('audit verify --strict');
    expect(out).toMatch(
      /^✔ Every decision comes out the same\.\n\nevents +\d+\ndecisions +2 made again, 2 the same\n$/,
    );
    expect(code).toBe(0);
    const limited = await scene.redrive('audit verify --limit 1');
    expect(limited.out).toContain('These are the newest 1; --limit takes more.');
    expect(limited.out).toContain('1 made again, 1 the same');
  });

  it('finds a decision that was changed in a file: exit code 1', async () => {
    const scene = await stage();
    await decide(scene);
    const events = await trail(scene);
    const changed = events.map((event) =>
      event.event_type === 'retry_attempt' ? { ...event, delay_seconds: 9 } : event,
    );
    write(scene.folder, changed);
    const { out, code } = await scene.redrive('audit verify trail.jsonl');
    expect(code).toBe(1);
    expect(out).toContain('✗ 1 decision comes out otherwise.');
    expect(out).toMatch(/retry_attempt.*: delay_seconds\n {2}written {2}\{.*\n {2}decided {2}\{/);
    const [report] = await scene.json('audit verify trail.jsonl');
    expect(report).toMatchObject({ checked: 2, same: 1, different: 1 });
  });

  it('tells of what is missing or cannot be read, and fails for it only where that is wanted', async () => {
    const scene = await stage();
    await decide(scene);
    const events = await trail(scene);
    write(
      scene.folder,
      events.filter((_, i) => i !== 1),
    );
    const text = `${readFileSync(join(scene.folder, 'trail.jsonl'), 'utf8')}\nnonsense\n`;
    const input = () => Promise.resolve(Buffer.from(text));
    const { out, code } = await scene.redrive('audit verify -', { input });
    expect(code).toBe(0);
    expect(out).toMatch(/^missing +1 event\n +\d+ to \d+ of \S+$/m);
    expect(out).toMatch(/^unreadable +1$/m);
    expect((await scene.redrive('audit verify - --strict', { input })).code).toBe(1);
  });

  it('tells of policies that are unknown, or not what was registered', async () => {
    const scene = await stage();
    await decide(scene);
    const events = await trail(scene);
    write(
      scene.folder,
      events.filter(({ event_type: type }) => type !== 'policy_registered'),
    );
    expect((await scene.redrive('audit verify trail.jsonl')).out).toContain(
      '2 decisions could not be made again: their policy is not in the trail',
    );
    const forged = events.map((event) =>
      event.event_type === 'policy_registered'
        ? { ...event, definition: { maxAttempts: 2 } }
        : event,
    );
    write(scene.folder, forged);
    const { out, code } = await scene.redrive('audit verify trail.jsonl');
    expect(code).toBe(1);
    expect(out).toContain('✗ 1 policy is not what was registered.');
  });

  it('does without a policy of the server that nobody can read', async () => {
    const registered = {
      event_type: 'policy_registered',
      policy: 'x',
      definition: { maxAttempts: 0 },
    };
    const event = { ...registered, timestamp: '2026-01-01T00:00:00Z' };
    const url = await answering({
      status: 200,
      body: { items: [{ id: 1, event }], next_cursor: null },
    });
    const { code, out } = await call(['audit', 'verify', '--url', url]);
    expect(code).toBe(1);
    expect(out).toMatch(/^wrong policies +x$/m);
  });

  it('needs a file that is there, and needs no server for it', async () => {
    const folder = tempFolder();
    expect(await call('audit verify nowhere.jsonl', { cwd: folder })).toMatchObject({ code: 2 });
    write(folder, []);
    const { out, code } = await call('audit verify trail.jsonl', { cwd: folder });
    expect(code).toBe(0);
    expect(out).toContain('There is no decision in it that could be made again.');
  });
});

/** Two decisions: one to try again, one to give up. */
async function decide({ receiver, redrive, event }: Stage): Promise<void> {
  receiver.status = 503;
  await redrive(['submit', receiver.url, '1', '--id', id(1)]);
  await event('retry');
  receiver.status = 422;
  await redrive(['submit', receiver.url, '1', '--id', id(2)]);
  await event('failed');
}

/** Oldest first. */
async function trail({ json }: Stage): Promise<AuditEvent[]> {
  return ((await json('audit list --limit 1000')) as unknown as AuditEvent[]).toReversed();
}

function write(folder: string, events: readonly object[]): void {
  writeFileSync(
    join(folder, 'trail.jsonl'),
    events.map((event) => JSON.stringify(event)).join('\n'),
  );
}
