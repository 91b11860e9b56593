import { memoryDelayQueue } from '@redrive/engine/memory';
import { describe, expect, it } from 'vitest';
import { memoryNotifications } from '../adapters/memory/index.ts';
import { createNotifications } from './service.ts';
import { failure, notification, stage } from './stage.test.ts';

const make = (more: object) =>
  createNotifications({
    repository: memoryNotifications(),
    queues: { urgent: memoryDelayQueue(), bulk: memoryDelayQueue() },
    deliver: async () => undefined,
    ...more,
  });

describe('misspelt names are refused with the one that is meant', () => {
  it('of options and of priorities', () => {
    expect(() => make({ polices: {} })).toThrow(/polices.*Did you mean 'policies'/s);
    expect(() => make({ policies: { criticl: {} } })).toThrow(/Did you mean 'critical'/);
    expect(() => make({ policies: { low: {} }, graceMs: 5 })).not.toThrow();
  });

  it('of the fields of a notification, where those of the API are a usual slip', async () => {
    const { service } = await stage();
    const given = { ...notification(), ttlMS: 5, recipient: { userId: 'u', user_id: 'u' } };
    await expect(service.create(given)).rejects.toMatchObject({
      faults: [
        { path: 'ttlMS', message: "There is no such field. Did you mean 'ttlMs'?" },
        { path: 'recipient.user_id', message: 'In a program this field is called userId.' },
      ],
    });
  });

  it('of the fields of a report', async () => {
    const { service } = await stage();
    const report = service.reportFailure({ ...failure(), retry_after_ms: 5 } as never);
    await expect(report).rejects.toMatchObject({
      faults: [{ message: 'In a program this field is called retryAfterMs.' }],
    });
  });
});

it('a service that was not started says so', async () => {
  const service = make({});
  await expect(service.create(notification())).rejects.toThrow(/start the service first/);
});
