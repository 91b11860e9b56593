/** The retry manager with everything of NATS behind it: keys in a bucket, events in a stream. */
import { describeService, natsClient, sharedServer } from '@redrive/services/vitest';
import { type CategoryName, categoryMatrix, createRetryManager, type Policy } from 'redrive';
import { expect, it } from 'vitest';
import { createStream, jetstreamIdempotency, kvGet, kvPut, natsAudit } from '../index.ts';

const names = Object.keys(categoryMatrix) as CategoryName[];

/** As many attempts as the matrix has, and short waits. */
const quick = Object.fromEntries(
  names.map((name) => [
    name,
    { maxAttempts: categoryMatrix[name].maxAttempts, base: 1 } satisfies Policy,
  ]),
) as Record<CategoryName, Policy>;

describeService('NATS 2.15', () => {
  it('retries, records and audits an operation of each category, and its effect happens once', async () => {
    await using client = await natsClient(await sharedServer('NATS 2.15'));
    const { connection } = client;
    const bucket = client.name();
    const keys = client.name();
    const trail = client.name();
    const subject = `${trail}.events`;
    await createStream(connection, { name: trail, subjects: [subject] });
    const store = jetstreamIdempotency(connection, { bucket: keys });
    await client.manager.streams.add({
      name: `KV_${bucket}`,
      subjects: [`$KV.${bucket}.>`],
      max_msgs_per_subject: 64,
    });
    const manager = createRetryManager({
      categories: quick,
      idempotency: store,
      audit: natsAudit(connection, { subject }),
    });
    const run = (name: CategoryName) =>
      manager.execute(
        name,
        `work of ${name}`,
        async ({ attempt, maxAttempts }) => {
          await kvPut(connection, bucket, name, `attempt ${attempt}`);
          if (attempt < maxAttempts) throw new Error('not yet');
          return { attempt };
        },
        { idempotencyKey: `key-of-${name}`, tenantId: 't-1' },
      );
    for (const name of names) {
      const { maxAttempts } = categoryMatrix[name];
      expect(await run(name)).toEqual({ attempt: maxAttempts });
      // Again: answered from the bucket, without another attempt.
      expect(await run(name)).toEqual({ attempt: maxAttempts });
      const found = await kvGet(connection, bucket, name);
      expect(Buffer.from(found!.value).toString()).toBe(`attempt ${maxAttempts}`);
    }
    await manager.flush();
    const writes = await client.manager.streams.info(`KV_${bucket}`);
    const attempts = names.reduce((sum, name) => sum + categoryMatrix[name].maxAttempts, 0);
    expect(writes.state.messages).toBe(attempts);

    const { state } = await client.manager.streams.info(trail);
    const told = new Map<string, string[]>();
    for (let seq = 1; seq <= state.last_seq; seq++) {
      const stored = await client.manager.streams.getMessage(trail, { seq });
      const event = stored!.json<Record<string, string>>();
      if (event['event_type'] === 'policy_registered') continue;
      const code = String(event['retry_category']);
      told.set(code, [...(told.get(code) ?? []), event['action'] ?? String(event['event_type'])]);
    }
    expect(told).toEqual(
      new Map(
        names.map((name) => [
          `RETRY_${name}`,
          [
            ...Array.from({ length: categoryMatrix[name].maxAttempts - 1 }, () => 'retry_attempt'),
            'record',
            'hit',
          ],
        ]),
      ),
    );
    expect(manager.auditFailures).toBe(0);
    for (const name of [`KV_${bucket}`, `KV_${keys}`]) await client.manager.streams.delete(name);
  });
});
