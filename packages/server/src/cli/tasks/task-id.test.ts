import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { call, cleanUp, id, stage } from '../stage.test.ts';

const beginning = (digits: string) => `${digits}0000-0000-4000-8000-000000000001`;

describe('the beginning of an id', () => {
  it.each(['cancel', 'expedite', 'succeeded'])(
    'is not enough for redrive %s where older tasks were not compared',
    async (action) => {
      const { url, asked } = await serverWith(2001);
      const { code, err } = await call(`${action} abcd --json`, { env: { REDRIVE_URL: url } });
      expect([code, err]).toEqual([1, '']);
      expect(asked.filter((line) => !line.startsWith('GET '))).toEqual([]);
      const told = await call(`${action} abcd`, { env: { REDRIVE_URL: url } });
      expect(told.err).toContain('Nothing was changed. Give the whole id: abcd0000-');
    },
  );

  it('is enough where every task was compared', async () => {
    const { url, asked } = await serverWith(2000);
    await call('cancel abcd', { env: { REDRIVE_URL: url } });
    expect(asked.at(-1)).toBe(`DELETE /api/v1/retries/${beginning('abcd')}`);
  });

  it('is enough to show a task', async () => {
    const { url, asked } = await serverWith(2001);
    await call('show abcd', { env: { REDRIVE_URL: url } });
    expect(asked.at(-1)).toBe(`GET /api/v1/retries/${beginning('abcd')}`);
  });

  it('means the task of the destination that is named', async () => {
    const { redrive, json } = await stage();
    const [first, second] = ['aaaa1', 'aaaa2'].map((digits) => id(1).replace(/^.{5}/, digits));
    await redrive(['submit', 'queue:a', '1', '--id', first!, '--in', '1h']);
    await redrive(['submit', 'http://127.0.0.1:9/x', '1', '--id', second!, '--in', '1h']);
    expect(await json('cancel aaaa')).toMatchObject([{ error: { code: 'AMBIGUOUS' } }]);
    expect(await json('cancel aaaa --destination http://127.0.0.1:9/other')).toMatchObject([
      { error: { code: 'TASK_UNKNOWN' } },
    ]);
    expect(await json('cancel aaaa --destination http://127.0.0.1:9/x')).toMatchObject([
      { message_id: second, result: 'cancelled' },
    ]);
    expect(await json('cancel aaaa --destination queue:a')).toMatchObject([
      { message_id: first, result: 'cancelled' },
    ]);
  });
});

/** So many tasks, the newest of which has an id that begins with abcd. */
async function serverWith(count: number): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer(({ method, url = '' }, response) => {
    asked.push(`${method} ${url}`);
    const query = new URL(url, 'http://x').searchParams;
    const from = Number(query.get('cursor') ?? 0);
    const to = Math.min(count, from + Number(query.get('limit')));
    const items = Array.from({ length: to - from }, (_, i) => taskOf(from + i));
    const page = { items, next_cursor: to < count ? String(to) : null };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(page));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  cleanUp(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

function taskOf(index: number): object {
  return {
    message_id: index === 0 ? beginning('abcd') : id(index),
    destination: { kind: 'queue', address: 'orders' },
    lane: 'queue:orders',
    status: 'pending',
    retry_count: 0,
    max_retries: 3,
    generation: 0,
    due_at: '2030-01-01T00:00:00Z',
    created_at: '2030-01-01T00:00:00Z',
  };
}
