import { http } from '@redrive/engine/http';
import { describe, expect, it } from 'vitest';
import { id, stage } from '../harness.test.ts';

const evil = 'https://data.evil.example/hook';

/** An app whose deliveries may go to this machine and one host, and the names that were looked up. */
async function listed() {
  const asked: string[] = [];
  const delivery = http({
    public: false,
    allow: ['loopback', 'api.example.com'],
    resolve: (host) => {
      asked.push(host);
      return Promise.resolve(['127.0.0.1']);
    },
  });
  const staged = await stage({ engineOptions: { deliveries: [delivery] } });
  // One message in review.
  await staged.post('/api/v1/retries', {
    message_id: id(9),
    destination: 'queue:orders',
    payload: 1,
    retry_count: 0,
    classification: 'BUSINESS',
  });
  return { ...staged, asked };
}

const refused = {
  status: 400,
  body: {
    code: 'ADDRESS_REFUSED',
    detail: expect.stringContaining("The host 'data.evil.example' is not allowed."),
    errors: [{ in: 'body', path: '/destination', code: 'ADDRESS_REFUSED' }],
  },
};

describe('a host that is not in the list', () => {
  it.each([
    ['fresh work', 'POST', '/api/v1/retries', { payload: 1 }],
    ['a failure', 'POST', '/api/v1/retries', { payload: 1, retry_count: 1 }],
    ['an edit', 'PUT', '/api/v1/review/1/edit', {}],
    ['a redirected replay', 'POST', '/api/v1/review/1/replay', {}],
    ['a bulk replay', 'POST', '/api/v1/review/bulk', { action: 'replay', all: true }],
  ] as const)(
    'is refused at once, and nobody asks for its address: %s',
    async (_, method, url, body) => {
      const { ask, asked, engine } = await listed();
      const answer = await ask({ method, url, body: { ...body, destination: evil } });
      expect(answer).toMatchObject(refused);
      expect(asked).toEqual([]);
      expect(await engine.list({ limit: 10 })).toHaveLength(1);
      expect(await engine.inbox.item(1)).toMatchObject({ state: 'open' });
    },
  );

  it('is refused by itself among many', async () => {
    const { post, asked } = await listed();
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    const items = [evil, 'https://api.example.com/hook', 'http://localhost:1/'].map(
      (destination) => ({ destination, payload: 1, due_at: soon }),
    );
    const many = [...items, { destination: evil, payload: 1, retry_count: 1 }];
    expect(await post('/api/v1/retries', { items: many })).toMatchObject({
      body: {
        accepted: [{ index: 1 }, { index: 2 }],
        rejected: [
          { index: 0, code: 'ADDRESS_REFUSED', path: '/destination' },
          { index: 3, code: 'ADDRESS_REFUSED', path: '/destination' },
        ],
      },
    });
    expect(asked).toEqual([]);
  });
});
