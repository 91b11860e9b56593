/** Commands on something that answers, and is not Redrive: a sentence, and never a fault of our own. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { call, cleanUp, id } from './stage.test.ts';

const commands = [
  'list',
  `show ${id(1)}`,
  `cancel ${id(1)}`,
  `expedite ${id(1)}`,
  `succeeded ${id(1)}`,
  'lanes list',
  'lanes pause queue:orders',
  'lanes resume queue:orders',
  'review list',
  'review groups',
  'review note x --owner y',
  'review show 1',
  'review replay 1',
  'review discard 1',
  'review erase 1 --yes',
  'review edit 1',
  'review edit 1 --payload {}',
  'review edit 1 --undo',
  'bulk preview --all',
  'bulk start --all',
  'bulk list',
  'bulk members 1',
  'bulk pause 1',
  'audit list',
  'audit verify',
  'submit queue:orders {}',
  'submit queue:orders --file -',
];

const lies = {
  'another object': '{"hello":"world"}',
  'a list': '[1,2]',
  null: 'null',
  'a text': '"fine"',
  'a page': '<!doctype html><title>It works!</title>',
  nothing: '',
  'a list of nothings':
    '{"items":[null],"accepted":[null],"rejected":[],"sample":[{}],"count":1,"next_cursor":null}',
  'fields of other kinds':
    '{"items":[{"id":"1","lane":7,"event":3}],"id":"x","message_id":{"toString":1},"lane":["x"],"accepted":{},"count":"1"}',
};

describe.each(Object.entries(lies))('a server that answers with %s', (_, lie) => {
  it.each(commands)('is told from Redrive by redrive %s', async (line) => {
    const url = await lying(200, lie);
    const input = () => Promise.resolve(Buffer.from('{"a":1}\n'));
    for (const words of [line, `${line} --json`]) {
      const { code, out, err } = await call(words, { env: { REDRIVE_URL: url }, input });
      expect(err).toContain(`What answers at ${url}`);
      expect(err).toContain('is not Redrive, or another version of it.');
      expect([code, out]).toEqual([69, '']);
    }
  });
});

describe('a server that is not Redrive', () => {
  it('has a code for programs', async () => {
    const url = await lying(200, '{}');
    const { err } = await call('list --json', { env: { REDRIVE_URL: url } });
    expect(JSON.parse(err)).toMatchObject({ error: { code: 'NOT_REDRIVE' } });
  });

  it('is not taken for a job that one may wait for', async () => {
    const url = await lying(200, '{"id":1,"state":"running"}');
    const { code, err } = await call('bulk watch 1', { env: { REDRIVE_URL: url } });
    expect([code, err]).toEqual([69, expect.stringContaining('is not Redrive')]);
  });

  it('does not lead through the same page without end', async () => {
    const url = await lying(200, '{"items":[],"next_cursor":"again"}');
    const { code, err } = await call('list', { env: { REDRIVE_URL: url } });
    expect([code, err]).toEqual([69, expect.stringContaining('is not Redrive')]);
  });

  it.each(['{"code":{"toString":1}}', '{"code":7}', '{"detail":"no"}'])(
    'is known by a refusal such as %s',
    async (lie) => {
      const url = await lying(409, lie);
      const { code, err } = await call(`show ${id(1)}`, { env: { REDRIVE_URL: url } });
      expect([code, err]).toEqual([69, expect.stringContaining('(status 409) is not Redrive')]);
    },
  );

  it('may refuse without a word', async () => {
    const url = await lying(
      409,
      '{"code":"NO","detail":{"toString":1},"title":[],"errors":[null,7]}',
    );
    const { code, err } = await call(`show ${id(1)}`, { env: { REDRIVE_URL: url } });
    expect([code, err]).toEqual([1, 'It was refused with status 409 (NO):\n  null\n  7\n']);
  });

  it('may refuse lines that there are none of', async () => {
    const url = await lying(422, '{"code":"NO","rejected":[null]}');
    const { code, err } = await call('submit queue:orders --file -', {
      env: { REDRIVE_URL: url },
      input: () => Promise.resolve(Buffer.from('{"a":1}\n')),
    });
    expect([code, err]).toEqual([69, expect.stringContaining('is not Redrive')]);
  });

  it('is a finding of the doctor', async () => {
    const url = await lying(200, '{"ready":true,"checks":[null]}');
    const { out } = await call('doctor', { env: { REDRIVE_URL: url } });
    expect(out).toContain(`No server answers at ${url} (NOT_REDRIVE).`);
  });
});

async function lying(status: number, lie: string): Promise<string> {
  const server = createServer((_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(lie);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  cleanUp(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
