import type { Delivery, Run, Task } from '@redrive/engine';
import { describe, expect, it } from 'vitest';
import { stage } from './http/harness.test.ts';
import { inServiceWords, namingSettings } from './service-words.ts';

const advice = "The host 'a.test' is not allowed. If it should be, name it in `allow`.";
const told =
  "The host 'a.test' is not allowed. If it should be, add it to REDRIVE_HTTP_ALLOW, such as REDRIVE_HTTP_ALLOW=a.test";

describe('a sentence of the engine', () => {
  it.each([
    ["The host 'a.test' has a private address, which is never allowed.", undefined],
    [advice, told],
    [
      "There is no policy 'x' in this engine. Did you mean 'y'?",
      "There is no policy 'x'. Did you mean 'y'?",
    ],
    ['None of the 0 open items matches. Look at the groups.', 'The inbox has no open items.'],
    [
      'None of the 7 open items matches. Look at the groups.',
      'No open item matches; 7 are open. `redrive review groups` shows them.',
    ],
  ])('%s', (given, wanted) => {
    expect(inServiceWords(given)).toBe(wanted ?? given);
    expect(inServiceWords(inServiceWords(given))).toBe(wanted ?? given);
  });

  it('names the settings where a delivery refuses an address', async () => {
    const code = 'ADDRESS_REFUSED';
    const delivery: Delivery = namingSettings<Delivery>({
      kind: 'http',
      check: () => [{ path: 'to', code, message: advice }],
      deliver: () =>
        Promise.resolve({ type: 'failed', failure: { class: 'technical', code, message: advice } }),
    });
    const to = { kind: 'http', address: 'http://a.test/' };
    expect(delivery.check?.(to, undefined)).toMatchObject([{ message: told }]);
    expect(await delivery.deliver({} as Task, {} as Run)).toMatchObject({
      failure: { message: told },
    });
  });
});

it('names the setting of a broker that is missing, and says what an empty inbox is', async () => {
  const { post, engine } = await stage();
  await engine.start();
  for (const [destination, setting] of [
    ['queue:a', 'RABBITMQ_URL'],
    ['nats:a', 'NATS_URL'],
    ['kafka:a', 'KAFKA_BROKERS'],
  ] as const) {
    const { body } = await post('/api/v1/retries', { destination, payload: 1 });
    expect(body).toMatchObject({
      warning: expect.stringContaining(`Set ${setting} in the service.`),
    });
  }
  const nothing = await post('/api/v1/review/bulk', { action: 'discard', all: true });
  expect(nothing.body).toMatchObject({ detail: 'The inbox has no open items.' });
});
