/** What the tests of operations share: a retry manager with short waits, and what it told. */
import { type AuditEvent, createRetryManager } from 'redrive';
import { expect, it } from 'vitest';

export const soon = { timeout: 20_000, interval: 5 };
const quick = { base: '20ms', cap: '100ms' } as const;
export const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();

/** A manager with the attempts of the matrix and short waits, and what it told. */
export function managed() {
  const events: AuditEvent[] = [];
  const manager = createRetryManager({
    categories: {
      NATS_CONNECT: { maxAttempts: 5, ...quick },
      NATS_PUBLISH: { maxAttempts: 3, ...quick },
      NATS_SUBSCRIBE: { maxAttempts: 3, ...quick },
      NATS_STREAM_CREATE: { maxAttempts: 2, ...quick },
      KV_CREATE: { maxAttempts: 2, ...quick },
      KV_GET: { maxAttempts: 3, ...quick },
      KV_PUT: { maxAttempts: 3, ...quick },
      KV_DELETE: { maxAttempts: 2, ...quick },
    },
    audit: (event) => void events.push(event),
  });
  const told = async () => {
    await manager.flush();
    return events
      .filter((event) => event.event_type !== 'policy_registered')
      .map((event) => `${event.event_type} ${String(event['retry_category'])}`);
  };
  return { manager, told };
}

it('tells each attempt under the category of its operation', async () => {
  const { manager, told } = managed();
  let calls = 0;
  await manager.execute('KV_GET', 'read', async () => {
    if (++calls < 2) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
  });
  expect(await told()).toContain('retry_attempt RETRY_KV_GET');
});
