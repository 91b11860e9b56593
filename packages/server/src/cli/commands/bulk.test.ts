import { describe, expect, it } from 'vitest';
import { watchJob } from '../tasks/bulk-watch.ts';
import { Client } from '../client.ts';
import type { Io } from '../command.ts';
import { outputOf } from '../terminal/output.ts';
import { answering, call, id, type Stage, stage } from '../stage.test.ts';

describe('redrive bulk', () => {
  it('says what it would take', async () => {
    const scene = await stage();
    await fail(scene, 3);
    const { out } = await scene.redrive('bulk preview --reason PERMANENT');
    expect(out).toMatch(/^It would take 3 items\.\n\nID +REASON/);
    expect(await scene.json('bulk preview --ids 1,2')).toMatchObject([{ count: 2 }]);
    expect((await scene.redrive('bulk preview --reason EXPIRED')).out).toBe(
      'It would take 0 items.\n',
    );
  });

  it('sends all of them again, and is watched until it is over', async () => {
    const scene = await stage();
    await fail(scene, 3);
    scene.receiver.status = 200;
    const { out, code } = await scene.redrive('bulk start --all --per-second 1000 --watch');
    expect(code).toBe(0);
    expect(out).toMatch(/^Job \d+ has begun\.\n/);
    expect(out).toMatch(
      /Job \d+, replay: finished, 1,000 a second\n█+ {2}100 % {2}3 of 3\n3 sent\n$/,
    );
    expect((await scene.redrive('bulk list')).out).toMatch(
      /^ *\d+ +replay +finished +3\/3 +0 +(?:now|\S+ s ago) +local$/m,
    );
    const [job] = await scene.json('bulk list');
    const members = `bulk members ${Number(job!['id'])}`;
    expect((await scene.redrive(members)).out).toMatch(/^ITEM +RESULT\n +1 +done\n/);
    expect((await scene.redrive(`${members} --limit 2`)).out).toContain('the oldest 2; --limit');
    expect(await scene.json(`${members} --result conflict`)).toEqual([]);
  });

  it('stops by itself where its canary comes back, and says why: exit code 1', async () => {
    const scene = await stage();
    await fail(scene, 3);
    const { out, code } = await scene.redrive('bulk start --all --canary 1,10 --watch');
    expect(code).toBe(1);
    expect(out).toMatch(/replay: stopped, step 1 of its canary \(1, 10\)/);
    expect(out).toContain('1 back in the inbox');
    expect(out).toMatch(/redrive bulk resume \d+ lets it go on all the same/);
  });

  it('draws a bar where a person looks', async () => {
    const scene = await stage();
    await fail(scene, 1);
    scene.receiver.status = 200;
    const { out } = await scene.redrive('bulk start --all --watch', { isTty: true, columns: 80 });
    expect(out).toContain('\u001b[32m█');
    expect(out.endsWith('\u001b[?25h')).toBe(true);
  });

  it('tells programs each time something has changed', async () => {
    const scene = await stage();
    await fail(scene, 1);
    const [job] = await scene.json('bulk start --all --action discard');
    const told = await scene.json(`bulk watch ${Number(job!['id'])}`);
    expect(told.at(-1)).toMatchObject({ action: 'discard', state: 'finished', done: 1 });
  });

  it('leaves the job running when whoever watches leaves', async () => {
    const scene = await stage();
    await fail(scene, 2);
    const lane = new URL(scene.receiver.url).origin;
    await scene.redrive(['lanes', 'pause', lane]);
    const [job] = await scene.json('bulk start --all');
    const jobId = Number(job!['id']);
    const controller = new AbortController();
    let err = '';
    const io = {
      out: () => controller.abort(),
      err: (text: string) => void (err += text),
      env: {},
      columns: 80,
      isTty: false,
    };
    const output = outputOf(io as unknown as Io, false);
    const client = new Client({ url: scene.url, timeoutMs: 5000 });
    expect(await watchJob(jobId, client, output, io as unknown as Io, controller.signal)).toBe(0);
    expect(err).toBe(
      `The job goes on. redrive bulk watch ${jobId} follows it again; redrive bulk pause ${jobId} holds it.\n`,
    );
    expect((await scene.json('bulk list'))[0]).toMatchObject({ state: 'running' });
  });

  it('is followed through a server that is away for a moment', async () => {
    const counts = {
      total: 2,
      done: 1,
      skipped: 0,
      failed: 1,
      left: 0,
      underway: 0,
      taken: 0,
      back: 0,
    };
    const about = {
      id: 7,
      action: 'replay',
      state: 'finished',
      created_at: '2026-01-01T00:00:00Z',
    };
    const job = { ...about, ...counts, canary: [] };
    const away = { status: 503, body: { code: 'STORE_UNAVAILABLE', detail: 'away' } };
    const url = await answering(away, away, { status: 200, body: job });
    const { code, out } = await call(['bulk', 'watch', '7', '--url', url]);
    expect(code).toBe(0);
    expect(out).toContain('1 sent, 1 not possible\nWhat was not possible is still in the inbox');
  });

  it('is not watched where it is not known', async () => {
    const scene = await stage();
    const { code, err } = await scene.redrive('bulk watch 99');
    expect(code).toBe(1);
    expect(err).not.toBe('');
    expect((await scene.redrive('bulk list')).out).toBe('There are none.\n');
  });

  it('is held, let go on and ended', async () => {
    const scene = await stage();
    await fail(scene, 2);
    await scene.redrive(['lanes', 'pause', new URL(scene.receiver.url).origin]);
    const { out } = await scene.redrive('bulk start --all --canary 1');
    const [, job] = /^Job (\d+) has begun\./.exec(out)!;
    expect((await scene.redrive(`bulk pause ${job!}`)).out).toContain(': paused');
    expect((await scene.redrive(`bulk resume ${job!}`)).out).toContain(': running');
    expect((await scene.redrive(`bulk cancel ${job!}`)).out).toContain(': cancelled');
    expect((await scene.redrive(`bulk watch ${job!}`)).code).toBe(1);
    expect((await scene.redrive(`bulk pause ${job!}`)).code).toBe(1);
  });

  it.each([
    ['bulk start', 'Which items?'],
    ['bulk start --all --reason EXPIRED', '--all is everything'],
    ['bulk preview --ids 1 --reason EXPIRED', '--ids names them all'],
    ['bulk preview --ids 1,two', "--ids: '1,two' are not whole numbers"],
    ['bulk start --all --canary 0', "--canary: '0' are not whole numbers"],
    ['bulk watch first', "'first' is not the number of a job."],
  ])('refuses %j', async (line, message) => {
    const scene = await stage();
    const { code, err } = await scene.redrive(line);
    expect(code).toBe(2);
    expect(err).toContain(message);
  });
});

async function fail({ receiver, redrive, event }: Stage, count: number): Promise<void> {
  receiver.status = 422;
  for (let digit = 1; digit <= count; digit++) {
    await redrive(['submit', receiver.url, '1', '--id', id(digit)]);
    await event('failed');
  }
}
