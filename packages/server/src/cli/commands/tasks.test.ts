import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { visibleLength } from '../terminal/terminal.ts';
import { call, cleanUp, id, stage } from '../stage.test.ts';

const evil = '\u001b]0;owned\u0007\u009b31m\u202e';
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;

describe('redrive list', () => {
  it('shows what waits, with what it waits for', async () => {
    const { redrive, receiver, event } = await stage();
    expect((await redrive('list')).out).toBe('There are none.\n');
    receiver.status = 503;
    await redrive(['submit', receiver.url, '1', '--id', id(1)]);
    await event('retry');
    await redrive(['submit', 'http://127.0.0.1:9/later', '1', '--id', id(2), '--in', '2h']);
    const { out } = await redrive('list', { columns: 200 });
    const [head, second, first] = out.split('\n');
    expect(head).toMatch(
      /^MESSAGE ID +DESTINATION +STATUS +RETRIES +WHEN +LAST ERROR +AT \(UTC\)$/,
    );
    expect(second).toMatch(/000002 +http:\/\/127\.0\.0\.1:9\/later +pending +0\/3 +in 2 h +\d{4}-/);
    expect(first).toMatch(
      /000001 +http.*\/hook +pending +0\/3 +in \d\S* (?:s|min) +HTTP_503 transient/,
    );
  });

  it('does not show the error of before of a task that was handed over, or worked', async () => {
    const task = {
      message_id: id(1),
      destination: { kind: 'queue', address: 'orders' },
      lane: 'queue:orders',
      retry_count: 1,
      max_retries: 3,
      generation: 0,
      due_at: '2030-01-01T00:00:00Z',
      created_at: '2030-01-01T00:00:00Z',
      error: { class: 'transient', code: 'DEAD_LETTER_REJECTED', message: 'DEAD_LETTER_REJECTED' },
    };
    const items = ['retried', 'done', 'failed'].map((status) => ({ ...task, status }));
    const server = createServer((_, response) => {
      response.end(JSON.stringify({ items, next_cursor: null }));
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    cleanUp(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { out } = await call('list', { env: { REDRIVE_URL: url }, columns: 200 });
    const [, retried, done, failed] = out.split('\n');
    expect(retried).toMatch(/ retried .* handed to queue:orders /);
    expect(done).not.toContain('DEAD_LETTER');
    expect(failed).toMatch(/ DEAD_LETTER_REJECTED transient +2030/);
  });

  it('filters, limits, and fits the terminal', async () => {
    const { redrive, json, receiver, event } = await stage();
    for (const digit of [1, 2, 3]) {
      await redrive(['submit', `${receiver.url}/${'x'.repeat(100)}`, '1', '--id', id(digit)]);
    }
    await event('done', 3);
    expect(await json('list --status pending')).toEqual([]);
    expect(await json('list --status done --limit 2')).toHaveLength(2);
    const { out } = await redrive('list --limit 2', { isTty: true, columns: 90 });
    expect(out).toContain('These are the newest 2; --limit shows more.');
    expect(Math.max(...out.split('\n').map(visibleLength))).toBeLessThanOrEqual(90);
  });
});

describe('what is under way', () => {
  it('is told from what waits, and cancelled when it fails', async () => {
    const { redrive, receiver, event } = await stage();
    const { promise, resolve } = Promise.withResolvers<void>();
    receiver.held = promise;
    receiver.status = 503;
    await redrive(['submit', receiver.url, '1', '--id', id(1), '--ordering-key', 'k']);
    await event('started');
    await redrive(['submit', receiver.url, '2', '--id', id(2), '--ordering-key', 'k']);
    const { out } = await redrive('list');
    expect(out).toMatch(/000002 .* blocked /);
    expect(out).toMatch(/000001 .* in delivery /);
    expect((await redrive(['show', id(1)])).out).toMatch(/^now +in delivery$/m);
    expect((await redrive(['show', id(2)])).out).toMatch(
      /^now +waits behind another task of its ordering key$/m,
    );
    expect((await redrive(['cancel', id(1)])).out).toBe(
      `cancelling  ${id(1)}: it is in delivery, and cancelled unless that succeeds.\n`,
    );
    expect((await redrive('list')).out).toMatch(/000001 .* cancelling /);
    expect((await redrive(['show', id(1)])).out).toMatch(
      /^now +in delivery, and cancelled unless that succeeds$/m,
    );
    receiver.status = 503;
    resolve();
    await event('cancelled');
    expect((await redrive(['show', id(1)])).out).toMatch(/● cancelled by an operator$/m);
  });
});

describe('redrive show', () => {
  it('shows a task with its attempts, its timeline and its payload', async () => {
    const { redrive, receiver, event } = await stage();
    receiver.status = 503;
    receiver.body = 'down for\nrepairs';
    await redrive(['submit', receiver.url, '{"order":7}', '--id', id(1), '--header', 'x-a: 1']);
    await event('retry');
    const { out } = await redrive(['show', id(1)]);
    expect(out).toMatch(/^message +00000000/);
    expect(out).toMatch(/^status +pending$/m);
    expect(out).toMatch(/^due +in .* \(\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ\)$/m);
    expect(out).toMatch(/^headers +x-a: 1$/m);
    expect(out).toMatch(/● taken in$/m);
    expect(out).toMatch(/● attempt 1 failed after \d+ ms: HTTP_503 transient/m);
    expect(out).toMatch(/^ +down for\n +repairs$/m);
    expect(out).toMatch(/● the next attempt$/m);
    expect(out).toMatch(/^Payload\n\{\n {2}"order": 7\n\}$/m);
  });

  it('says how it ended', async () => {
    const { redrive, receiver, event } = await stage();
    await redrive(['submit', receiver.url, '1', '--id', id(1)]);
    await event('done');
    expect((await redrive(['show', id(1)])).out).toMatch(/● it worked$/m);
    receiver.status = 422;
    await redrive(['submit', receiver.url, '1', '--id', id(2)]);
    await event('failed');
    expect((await redrive(['show', id(2)])).out).toMatch(/● into the inbox: redrive review list/m);
  });

  it('shows what a task went through, replays and all', async () => {
    const { redrive, receiver, event } = await stage();
    receiver.status = 422;
    await redrive([
      'submit',
      receiver.url,
      '1',
      '--id',
      id(1),
      '--expires-in',
      '1d',
      '--policy',
      '{"base":"1s"}',
    ]);
    await event('failed');
    await redrive('review replay 1');
    await event('failed');
    const { out } = await redrive(['show', id(1)]);
    expect(out).toMatch(/^replays +1$/m);
    expect(out).toMatch(/^expires +in 1 d /m);
    expect(out).toMatch(/^policy +\S+$/m);
    expect(out).toMatch(/● attempt 1 of replay 1 failed/);
  });

  it('says that there is none, with exit code 1', async () => {
    const { redrive } = await stage();
    const { code, err, out } = await redrive(['show', id(9)]);
    expect([code, out]).toEqual([1, '']);
    expect(err).not.toBe('');
    expect((await redrive(['show', id(9), '--json'])).err).toMatch(
      /^\{"error":\{"code":"TASK_UNKNOWN"/,
    );
  });

  it('cuts a long payload, unless all of it is wanted, and shows bytes as bytes', async () => {
    const { redrive, receiver } = await stage();
    const long = JSON.stringify(Array.from({ length: 99 }, (_, i) => i));
    await redrive(['submit', receiver.url, long, '--id', id(1), '--in', '1h']);
    expect((await redrive(['show', id(1)])).out).toContain('... 61 more lines: --full shows all');
    expect((await redrive(['show', id(1), '--full'])).out).toContain('\n  98\n]');
    const input = () =>
      Promise.resolve(Buffer.from([0xff, 0xfe, 0x00, ...Array<number>(300).fill(7)]));
    await redrive(['submit', receiver.url, '--id', id(2), '--in', '1h'], { input });
    expect((await redrive(['show', id(2)])).out).toContain('Payload\n303 bytes\nff fe 00 07');
    await redrive(['submit', receiver.url, '--id', id(3), '--in', '1h'], {
      input: () => Promise.resolve(Buffer.of()),
    });
    expect((await redrive(['show', id(3)])).out).toContain('Payload\n(empty)');
  });

  it('lets nothing of a payload, a header or an answer reach the terminal', async () => {
    const { redrive, json, receiver, event } = await stage();
    receiver.status = 503;
    receiver.body = evil;
    const payload = JSON.stringify({ [evil]: `${evil}\u007f` });
    await redrive(['submit', receiver.url, payload, '--id', id(1), '--ordering-key', evil]);
    await redrive(['submit', receiver.url, evil, '--id', id(2), '--ordering-key', 'k2']);
    await event('retry', 2);
    for (const words of [['show', id(1)], ['show', id(2)], ['list'], ['lanes', 'list']]) {
      const { out, code } = await redrive(words, { columns: 300 });
      expect(code).toBe(0);
      expect(out).not.toMatch(OBEYED);
      const { out: data } = await redrive([...words, '--json']);
      expect(data).not.toMatch(OBEYED);
    }
    const [task] = await json(['show', id(1)]);
    expect(task!['payload']).toEqual(JSON.parse(payload));
  });
});

describe('redrive cancel', () => {
  it('cancels what waits, and says what it could not', async () => {
    const { redrive, json, receiver, event } = await stage();
    await redrive(['submit', receiver.url, '1', '--id', id(1), '--in', '1h']);
    await redrive(['submit', receiver.url, '1', '--id', id(2)]);
    await event('done');
    const { code, out, err } = await redrive(['cancel', id(1), id(2), id(3)]);
    expect(code).toBe(1);
    expect(out).toBe(`cancelled  ${id(1)}\n`);
    expect(err).toMatch(new RegExp(`^${id(2)}: .*\n${id(3)}: `));
    expect(await json(['cancel', id(2)])).toMatchObject([
      { message_id: id(2), error: { status: 409 } },
    ]);
    expect((await json(['show', id(1)]))[0]).toMatchObject({ status: 'cancelled' });
  });
});

describe('redrive expedite', () => {
  it('makes due what waits, and says what it could not', async () => {
    const { redrive, json, receiver, event } = await stage();
    await redrive(['submit', receiver.url, '1', '--id', id(1), '--in', '1h']);
    expect(await redrive(['expedite', id(1)])).toMatchObject({
      code: 0,
      out: `expedited  ${id(1)}: it is due now.\n`,
    });
    await event('done');
    expect(receiver.received).toEqual(['1']);
    const { code, out, err } = await redrive(['expedite', id(1), id(2)]);
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(new RegExp(`^${id(1)}: .*\n${id(2)}: `));
    expect(await json(['expedite', id(2)])).toMatchObject([
      { message_id: id(2), error: { code: 'TASK_UNKNOWN' } },
    ]);
  });

  it('asks which one where there are several, and takes the one that is said', async () => {
    const { redrive, json } = await stage();
    for (const queue of ['a', 'b']) {
      await redrive(['submit', `queue:${queue}`, '1', '--id', id(1), '--in', '1h']);
    }
    expect(await json(['expedite', id(1)])).toMatchObject([{ error: { code: 'AMBIGUOUS' } }]);
    expect(await json(['expedite', id(1), '--queue', 'b'])).toMatchObject([
      { destination: { address: 'b' }, result: 'expedited' },
    ]);
  });

  it('says that a task is on its way already', async () => {
    const { redrive, receiver, event } = await stage();
    const { promise, resolve } = Promise.withResolvers<void>();
    receiver.held = promise;
    await redrive(['submit', receiver.url, '1', '--id', id(1)]);
    await event('started');
    expect((await redrive(['expedite', id(1)])).out).toBe(
      `in delivery  ${id(1)}: it is on its way already.\n`,
    );
    resolve();
  });
});

describe('redrive succeeded', () => {
  it('changes nothing about what waits: exit code 1', async () => {
    const { redrive, json } = await stage();
    await redrive(['submit', 'queue:orders', '1', '--id', id(1), '--in', '1h']);
    const { code, out } = await redrive(['succeeded', id(1)]);
    expect(code).toBe(1);
    expect(out).toMatch(/^pending {2}\S+: it waits, or is on its way\. Nothing was changed/);
    expect(await json(['succeeded', id(1), '--queue', 'orders'])).toMatchObject([
      { result: 'pending' },
    ]);
    expect(await json(['succeeded', id(1), '--queue', 'other'])).toMatchObject([
      { error: { code: 'TASK_UNKNOWN' } },
    ]);
  });

  it('says what is done', async () => {
    const { redrive, receiver, event } = await stage();
    await redrive(['submit', receiver.url, '1', '--id', id(1)]);
    await event('done');
    expect(await redrive(['succeeded', id(1)])).toMatchObject({ code: 0, out: `done  ${id(1)}\n` });
  });
});

describe('redrive lanes', () => {
  it('lists, pauses and lets go on', async () => {
    const { redrive, json, receiver, event } = await stage();
    for (const words of ['lanes list', 'lanes', 'lanes --limit 5']) {
      expect((await redrive(words)).out).toBe('Nothing was sent anywhere yet.\n');
    }
    const lane = new URL(receiver.url).origin;
    const paused = await redrive(['lanes', 'pause', lane]);
    expect(paused.out).toBe(
      `${lane} is paused. redrive lanes resume ${lane} lets it go on.\nNothing waits there, and nothing was delivered there lately. Is the name right?\n`,
    );
    expect(await json(['lanes', 'pause', lane])).toEqual([{ lane, paused: true, known: true }]);
    await redrive(['submit', receiver.url, '1']);
    expect((await redrive('lanes list')).out).toMatch(
      /^http:\/\/127\S+ +paused +0 .*due now +by local$/m,
    );
    expect(await json('lanes list')).toMatchObject([{ lane, state: 'paused' }]);
    expect(receiver.received).toEqual([]);
    expect((await redrive(['lanes', 'resume', lane])).out).toBe(`${lane} delivers again.\n`);
    await event('done');
    expect(receiver.received).toEqual(['1']);
  });

  it('shows where tasks wait behind an item of the inbox', async () => {
    const { redrive, json, receiver, event } = await stage();
    receiver.status = 400;
    for (const n of [1, 2, 3]) {
      await redrive(['submit', receiver.url, String(n), '--ordering-key', 'k']);
    }
    await event('failed');
    const lane = new URL(receiver.url).origin;
    const list = ['lanes', 'list', '--blocked'];
    expect((await redrive(list)).out).toContain('2 tasks blocked by 1 inbox item');
    expect(await json(list)).toMatchObject([{ lane, state: 'closed', blocked: 2, blocked_by: 1 }]);
    expect((await redrive('doctor')).out).toContain(`${lane}: 2 tasks waiting behind 1 open item`);
  });

  it('lists a part of them, and how many there are', async () => {
    const { redrive, json } = await stage();
    for (const name of ['a', 'b', 'c']) await redrive(['submit', `queue:${name}`, '1']);
    expect(await json('lanes list --prefix queue:b')).toMatchObject([{ lane: 'queue:b' }]);
    expect(await json('lanes list --state NO_HANDLER --limit 2')).toHaveLength(2);
    expect((await redrive('lanes list --kind http')).out).toBe('There is no such lane.\n');
    expect((await redrive('lanes list --limit 2')).out).toContain(
      'There are 3 lanes in all: 3 NO_HANDLER.',
    );
  });

  it('says of a lane that was not paused that resume changed nothing', async () => {
    const { redrive, json, receiver, event } = await stage();
    expect((await redrive('lanes resume queue:nothing')).out).toBe(
      'queue:nothing was not paused.\nNothing waits there, and nothing was delivered there lately. Is the name right?\n',
    );
    await redrive('lanes pause queue:nothing');
    expect(await json('lanes resume queue:nothing')).toEqual([
      { lane: 'queue:nothing', paused: false, known: true, was_paused: true },
    ]);
    await redrive(['submit', receiver.url, '1']);
    await event('done');
    const lane = new URL(receiver.url).origin;
    expect((await redrive(['lanes', 'resume', lane])).out).toBe(
      `${lane} was not paused. It delivers as before.\n`,
    );
  });

  it('does not say that a lane delivers which cannot', async () => {
    const { redrive } = await stage();
    await redrive(['submit', 'queue:orders', '1']);
    expect((await redrive('lanes resume queue:orders')).out).toBe(
      'queue:orders is not paused, but this instance cannot deliver there.\n',
    );
  });
});

describe('a server that wants a token', () => {
  it('is not opened without one: exit code 77', async () => {
    const sha256 = '2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b';
    const { redrive } = await stage({ tokens: [{ name: 'ann', role: 'reader', sha256 }] });
    const without = await redrive('list');
    expect(without.code).toBe(77);
    expect(without.err).toContain('REDRIVE_TOKEN');
    expect(await redrive('list --token secret')).toMatchObject({ code: 0 });
    const reader = await redrive(['cancel', id(1), '--token', 'secret']);
    expect(reader.code).toBe(77);
    expect(reader.err).toContain('a role that does not allow it');
  });
});
