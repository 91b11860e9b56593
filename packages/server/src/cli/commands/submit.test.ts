import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { answering, call, id, stage } from '../stage.test.ts';

describe('redrive submit', () => {
  it('hands in one task and says when it is due', async () => {
    const { redrive, receiver, event } = await stage();
    const { code, out, err } = await redrive([
      'submit',
      receiver.url,
      '{"order": 7}',
      '--id',
      id(1),
    ]);
    expect(err).toBe('');
    expect(code).toBe(0);
    expect(out).toMatch(/^accepted {2}00000000-0000-4000-8000-000000000001/);
    expect(out).toContain(`redrive show ${id(1)} follows it.`);
    await event('done');
    expect(receiver.received).toEqual(['{"order":7}']);
  });

  it('answers with JSON and nothing else', async () => {
    const { json, receiver } = await stage();
    const [answer] = await json(['submit', receiver.url, '1', '--id', id(1)]);
    expect(answer).toMatchObject({ message_id: id(1), status_of_request: 'accepted' });
  });

  it('keeps a number that is longer than a number can be', async () => {
    const { redrive, receiver, event } = await stage();
    await redrive(['submit', receiver.url, '{"id":12345678901234567890}']);
    await event('done');
    expect(receiver.received).toEqual(['{"id":12345678901234567890}']);
  });

  it('takes what is no JSON as it is, and JSON too where it is told to', async () => {
    const { redrive, receiver, event } = await stage();
    await redrive(['submit', receiver.url, 'plain text']);
    await event('done');
    await redrive(['submit', receiver.url, '{ "a": 1 }', '--raw']);
    await event('done');
    expect(receiver.received).toEqual(['plain text', '{ "a": 1 }']);
  });

  it('reads the payload from a file, and from the standard input', async () => {
    const { redrive, receiver, event, folder } = await stage();
    writeFileSync(join(folder, 'order.json'), '{"from":"a file"}');
    await redrive(['submit', receiver.url, '@order.json']);
    await event('done');
    const input = () => Promise.resolve(Buffer.from('{"from":"the input"}'));
    const { err } = await redrive(['submit', receiver.url], { input, isTty: true });
    expect(err).toContain('Ctrl-D ends it');
    await event('done');
    expect(receiver.received).toEqual(['{"from":"a file"}', '{"from":"the input"}']);
    expect(await redrive(['submit', receiver.url, '@nowhere.json'])).toMatchObject({ code: 2 });
  });

  it('says that a task is known', async () => {
    const { redrive, receiver } = await stage();
    const words = ['submit', receiver.url, '1', '--id', id(1), '--in', '1h'];
    await redrive(words);
    expect((await redrive(words)).out).toMatch(/^duplicate {2}.*: it is known, and pending\./);
  });

  it('carries headers, policy, limits and times', async () => {
    const { redrive, json, receiver } = await stage();
    const dueAt = new Date(Date.now() + 3_600_000).toISOString();
    const words = `submit ${receiver.url} 1 --id ${id(1)} --max-retries 7 --ordering-key k --due-at ${dueAt}`;
    const more = ['--expires-in', '2d', '--header', 'x-tenant: a:b', '--policy', '{"base":"5s"}'];
    const { err } = await redrive([...words.split(' '), ...more]);
    expect(err).toBe('');
    const [task] = await json(['show', id(1)]);
    expect(task).toMatchObject({
      headers: { 'x-tenant': 'a:b' },
      max_retries: 7,
      due_at: dueAt,
      ordering_key: 'k',
      policy: expect.any(String),
      expires_at: expect.any(String),
    });
  });

  it('hands in a failure of somebody else, which waits, or lies in the inbox at once', async () => {
    const { redrive, json, receiver } = await stage();
    const failed = ['--retry-count', '0', '--error', 'no answer'];
    await redrive(['submit', receiver.url, '1', '--id', id(1), ...failed]);
    const [task] = await json(['show', id(1)]);
    expect(task).toMatchObject({ status: 'pending', error: { message: 'no answer' } });
    const { out } = await redrive(['submit', receiver.url, '1', ...failed, '--class', 'business']);
    expect(out).toMatch(/^failed {2}.*: it is in the inbox\./);
  });

  it.each([
    [['submit'], 'Where does it go?'],
    [
      ['submit', 'queue:x', '1', '--in', '1s', '--due-at', '2030-01-01'],
      'Either --in or --due-at.',
    ],
    [['submit', 'queue:x', '1', '--due-at', 'soon'], "--due-at: 'soon' is no time"],
    [['submit', 'queue:x', '1', '--header', 'nothing'], "--header: 'nothing' has no name."],
    [['submit', 'queue:x', '1', '--policy', '{'], '--policy: it begins as JSON'],
    [['submit', 'queue:x', '1', '--file', 'x'], 'With --file the payloads and ids are in the file'],
  ])('refuses %j, with what to do', async (words, message) => {
    const { code, err, out } = await call(words);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(message);
  });

  it('passes on what the server refuses, with exit code 1', async () => {
    const { redrive } = await stage();
    const { code, err, out } = await redrive(['submit', 'nonsense', '1']);
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain('/destination');
  });
});

describe('redrive submit --file', () => {
  it('hands in each line, in batches, and tells what was rejected by its line', async () => {
    const { redrive, receiver, folder, event } = await stage();
    const lines = Array.from({ length: 250 }, (_, i) =>
      JSON.stringify({ destination: receiver.url, payload: i, message_id: id(i) }),
    );
    lines[4] = '{"destination": ';
    lines[5] = '"text"';
    lines[120] = JSON.stringify({ destination: 'nowhere', payload: 1, max_retries: 'many' });
    lines[200] = lines[199]!;
    writeFileSync(join(folder, 'tasks.ndjson'), lines.join('\n\n'));
    const { code, out, err } = await redrive('submit --file tasks.ndjson');
    expect(out).toBe('250 lines: 246 accepted, 1 duplicate, 3 rejected\n');
    expect(code).toBe(1);
    expect(err).toContain('line 9: INVALID_JSON');
    expect(err).toContain('line 11: INVALID_ITEM A line is an object');
    expect(err).toMatch(/line 241: \w+ \/(max_retries|destination):/);
    await event('done', 246);
    expect(receiver.received).toHaveLength(246);
  });

  it('takes each line for a payload where there is a destination', async () => {
    const { redrive, receiver, event } = await stage();
    const input = () => Promise.resolve(Buffer.from('{"a":1}\n{"a":2}\n'));
    const { out, code } = await redrive(['submit', receiver.url, '--file', '-'], { input });
    expect([code, out]).toEqual([0, '2 lines: 2 accepted, 0 duplicates, 0 rejected\n']);
    await event('done', 2);
    expect(receiver.received.toSorted()).toEqual(['{"a":1}', '{"a":2}']);
  });

  it('takes nothing twice with the same key', async () => {
    const { redrive, receiver } = await stage();
    const input = () => Promise.resolve(Buffer.from('1\n2\n3\n'));
    const words = [
      'submit',
      receiver.url,
      '--file',
      '-',
      '--idempotency-key',
      'import-7',
      '--in',
      '1h',
    ];
    expect((await redrive(words, { input })).out).toContain('3 accepted');
    expect((await redrive(words, { input })).out).toContain('0 accepted, 3 duplicates');
  });

  it('tells programs of every rejection, and then the sum', async () => {
    const { json, receiver } = await stage();
    const input = () => Promise.resolve(Buffer.from('1\n{\n'));
    expect(await json(['submit', receiver.url, '--file', '-'], { input })).toEqual([
      { result: 'rejected', line: 2, code: 'INVALID_JSON', message: expect.any(String) },
      { result: 'total', lines: 2, accepted: 1, duplicates: 0, failed: 0, rejected: 1 },
    ]);
  });

  it('goes on where all of a batch is rejected', async () => {
    const { redrive } = await stage();
    const input = () => Promise.resolve(Buffer.from('{"destination":"x"}\n'.repeat(101)));
    const { out, code, err } = await redrive('submit --file -', { input });
    expect([code, out]).toEqual([1, '101 lines: 0 accepted, 0 duplicates, 101 rejected\n']);
    expect(err).toContain('further ones are only counted');
  });

  it('sends what is too much at once in parts, and rejects what is too large alone', async () => {
    const { redrive, receiver } = await stage({ maxRequestBytes: 2000 });
    const long = JSON.stringify('x'.repeat(700));
    const input = () =>
      Promise.resolve(Buffer.from(`${long}\n${long}\n${long}\n"${'y'.repeat(3000)}"\n`));
    const { out, err } = await redrive(['submit', receiver.url, '--file', '-', '--in', '1h'], {
      input,
    });
    expect(out).toBe('4 lines: 3 accepted, 0 duplicates, 1 rejected\n');
    expect(err).toContain('line 4: BODY_TOO_LARGE');
  });

  it('is patient with a server that is away for a moment', async () => {
    const away = {
      status: 503,
      body: { code: 'STORE_UNAVAILABLE', detail: 'away' },
      headers: { 'retry-after': '0' },
    };
    const done = { accepted: [{ index: 0, message_id: id(1), result: 'failed' }], rejected: [] };
    const url = await answering(away, { status: 202, body: done });
    const input = () => Promise.resolve(Buffer.from('1\n'));
    const { code, out } = await call(['submit', 'queue:x', '--file', '-', '--url', url], { input });
    expect(code).toBe(0);
    expect(out).toBe('1 line: 0 accepted, 0 duplicates, 1 straight into the inbox, 0 rejected\n');
  });

  it('ends where the server refuses all of it for another reason', async () => {
    const url = await answering({
      status: 422,
      body: { code: 'IDEMPOTENCY_MISMATCH', detail: 'Another payload.' },
    });
    const input = () => Promise.resolve(Buffer.from('1\n'));
    const { code, err } = await call(['submit', 'queue:x', '--file', '-', '--url', url], { input });
    expect([code, err]).toEqual([1, 'Another payload.\n']);
  });

  it('rejects a line that is too long to be meant', async () => {
    const input = () => Promise.resolve(Buffer.alloc(33 * 1024 * 1024, 0x31));
    const { code, err } = await call('submit queue:x --file -', { input });
    expect([code, err]).toEqual([1, 'line 1: TOO_LARGE The line is over 32 MiB.\n']);
  });

  it('says at once that nobody is there', async () => {
    const input = () => Promise.resolve(Buffer.from('1\n'));
    const env = { REDRIVE_URL: 'http://127.0.0.1:9' };
    const { code, err } = await call('submit queue:x --file -', { input, env });
    expect(code).toBe(69);
    expect(err).toContain('Is it running? redrive serve');
  });

  it('draws how far it is where a person looks, and takes it away at the end', async () => {
    const { redrive, receiver } = await stage();
    const input = () => Promise.resolve(Buffer.from('1\n{\n'));
    const words = ['submit', receiver.url, '--file', '-', '--in', '1h'];
    const { out } = await redrive(words, { input, isTty: true, env: { NO_COLOR: '1' } });
    const [, last] = out.split('\u001b[J\u001b[?25h');
    expect(last).toBe('2 lines: 1 accepted, 0 duplicates, 1 rejected\n');
  });
});
