/** When a message is due: `delay` or `due_at`, and what people call them elsewhere. */
import { EngineError } from '@redrive/engine';
import { describe, expect, it, vi } from 'vitest';
import { at, id, listAt, stage, textAt } from '../harness.test.ts';

const url = '/api/v1/retries';
const item = { destination: 'https://a.example.com/x', payload: 1 };

async function dueIn(given: object) {
  const { post, get } = await stage();
  const beforeMs = Date.now();
  const answer = await post(url, { ...item, message_id: id(1), ...given });
  expect(answer).toMatchObject({ status: 202, body: { status_of_request: 'accepted' } });
  const task = await get(`${url}/${id(1)}`);
  // The receipt says the same as the task.
  expect(at(answer.body, 'due_at')).toBe(at(task.body, 'due_at'));
  return Date.parse(textAt(task.body, 'due_at')) - beforeMs;
}

describe('A delay of a message', () => {
  it.each([
    [{ delay: '1h' }, 3_600_000],
    [{ delay: 90_000 }, 90_000],
    [{ delay: '1h', retry_count: 0 }, 3_600_000],
  ])('%j counts from now', async (given, ms) => {
    const found = await dueIn(given);
    expect(found).toBeGreaterThanOrEqual(ms);
    expect(found).toBeLessThan(ms + 60_000);
  });

  it.each([
    [{ delay: '1h', due_at: '2031-01-01T00:00:00Z' }, /either delay or due_at/],
    [{ delay: 'soon' }, /"soon" is not a duration\. Write '90s'/],
    [{ delay: -5 }, /-5 is not a duration/],
    [{ delay: true }, /A text or A number is needed/],
  ])('%j is refused beside other faults', async (given, message) => {
    const { post } = await stage();
    const { status, body } = await post(url, { ...item, ...given, max_retries: -1 });
    expect(status).toBe(400);
    const faults = listAt(body, 'errors');
    expect(faults).toHaveLength(2);
    const fault = faults.find((one) => at(one, 'path') === '/delay');
    expect(textAt(fault, 'message')).toMatch(message);
  });

  it.each([
    ['in', 'delay'],
    ['delay_ms', 'delay'],
    ['run_at', 'due_at'],
    ['dueAt', 'due_at'],
    ['scheduled_at', 'due_at'],
    ['url', 'destination'],
    ['body', 'payload'],
    ['id', 'message_id'],
    ['maxAttempts', 'max_retries'],
  ])('by the name %s is answered with %s', async (name, meant) => {
    const { post } = await stage();
    const { body } = await post(url, { ...item, [name]: '1h' });
    expect(at(listAt(body, 'errors')[0], 'message')).toBe(
      `There is no such field. Did you mean '${meant}'?`,
    );
  });
});

describe('A delay and the clock', () => {
  it('answers for a stored message although the store cannot be read again', async () => {
    const { post, get, engine } = await stage();
    vi.spyOn(engine, 'get').mockRejectedValueOnce(
      new EngineError('STORE_UNAVAILABLE', 'The store is away.'),
    );
    const answer = await post(url, { ...item, message_id: id(1), delay: '1h' });
    expect(answer).toMatchObject({ status: 202, body: { message_id: id(1), status: 'pending' } });
    expect(at((await get(`${url}/${id(1)}`)).body, 'status')).toBe('pending');
  });

  it('counts from the time of the store where the clock of this instance is behind', async () => {
    const hourMs = 3_600_000;
    const { post, get, engine } = await stage();
    vi.spyOn(engine, 'stats').mockReturnValue({ ...engine.stats(), clockSkewMs: -hourMs });
    const storeMs = Date.now() + hourMs;
    await post(url, { ...item, message_id: id(1), delay: '1h', retry_count: 0 });
    const { body } = await get(`${url}/${id(1)}`);
    const dueInMs = Date.parse(textAt(body, 'due_at')) - storeMs;
    expect(dueInMs).toBeGreaterThanOrEqual(hourMs);
    expect(dueInMs).toBeLessThan(hourMs + 60_000);
  });
});

describe('A list instead of an object', () => {
  it.each([url, '/api/v1/notifications', '/api/v1/notifications/failures'])(
    'is told at %s where many go',
    async (path) => {
      const { post } = await stage();
      const { status, body } = await post(path, [item]);
      expect(status).toBe(400);
      expect(at(listAt(body, 'errors')[0], 'message')).toContain('{"items": [...]}');
    },
  );
});
