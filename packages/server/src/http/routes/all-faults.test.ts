/** A request with several faults is told all of them in one answer, whoever finds them. */
import { memoryDelayQueue } from '@redrive/engine/memory';
import { createNotifications } from '@redrive/notifications';
import { memoryNotifications } from '@redrive/notifications/memory';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { at, listAt, stage, textAt } from '../harness.test.ts';

async function staged() {
  const clock = virtualClock(Date.UTC(2026, 0, 5, 12));
  const notificationService = createNotifications({
    repository: memoryNotifications(),
    queues: { urgent: memoryDelayQueue({ clock }), bulk: memoryDelayQueue({ clock }) },
    deliver: async () => undefined,
    clock,
    consume: false,
  });
  await notificationService.start();
  onTestFinished(() => notificationService.stop());
  return stage({ notificationService });
}

const faultyNotification = {
  recipient: {
    user_id: 5,
    device_ids: ['d1'],
    quiet_hours: { from: '25:00', to: 8, time_zone: 'X' },
  },
  priority: 'hihg',
  notification: { title: 'Hello' },
  ttl: 60,
  expires_at: '2030-01-01T00:00:00Z',
  idempotency_kye: 'k',
};
const faultsOfNotification = [
  '/expires_at',
  '/idempotency_kye',
  '/notification/body',
  '/priority',
  '/recipient/quiet_hours/from',
  '/recipient/quiet_hours/time_zone',
  '/recipient/quiet_hours/to',
  '/recipient/user_id',
];
const faultyReport = {
  device_id: '',
  attempt_nubmer: 1,
  retry_after_ms: -1,
  attempted_at: '2027-01-01T00:00:00Z',
};
const faultsOfReport = [
  '/attempt_nubmer',
  '/attempt_number',
  '/attempted_at',
  '/device_id',
  '/retry_after_ms',
];

describe('All faults of a request in one answer', () => {
  it.each([
    ['POST', '/api/v1/notifications', faultyNotification, faultsOfNotification],
    // What is missing is told once, and not again by what would be in it.
    [
      'POST',
      '/api/v1/notifications',
      { priority: 'x' },
      ['/notification', '/priority', '/recipient'],
    ],
    ['POST', '/api/v1/notifications/n1/failures', faultyReport, faultsOfReport],
    [
      'POST',
      '/api/v1/notifications/n1/successes',
      { device_id: 'd', attempt_number: 'x', attempted_at: '2027-01-01T00:00:00Z', eror: 1 },
      ['/attempt_number', '/attempted_at', '/eror'],
    ],
    [
      'POST',
      '/api/v1/criteria/isRetryDelayElapsed',
      { entities: 5, entity_id: 'e', settings: { maxRetries: 'x' }, contxt: {} },
      ['/contxt', '/entities', '/entity_id', '/settings/maxRetries'],
    ],
    [
      'POST',
      '/api/v1/policies/simulate',
      { clients: 0, policy: { maxAttempts: 0, jiter: 'full' }, outage: 'soon', sead: 1 },
      ['/clients', '/outage', '/policy/jiter', '/policy/maxAttempts', '/sead'],
    ],
    [
      'POST',
      '/api/v1/policies/simulate',
      { policy: { maxAttempts: 0 }, outage: 'soon', latency: 'x' },
      ['/latency', '/outage', '/policy/maxAttempts'],
    ],
    [
      'POST',
      '/api/v1/route/decide',
      {
        policy: { version: '1.0', providers: 'a' },
        policy_id: 'p',
        context: { request_id: {} },
        detail_level: 'all',
      },
      ['/context/request_id', '/detail_level', '/policy', '/policy/providers'],
    ],
    [
      'POST',
      '/api/v1/route/decide',
      { policy: { version: '1.0', providers: 'a' }, context: { request_id: {} } },
      ['/context/request_id', '/policy/providers'],
    ],
    [
      'POST',
      '/api/v1/route/outcome',
      { policy_id: '', provider: 5, latncy_ms: 1 },
      ['/latncy_ms', '/policy_id', '/provider', '/status'],
    ],
    [
      'POST',
      '/api/v1/review/bulk',
      { action: 'replay', all: true, ids: [1], destination: 'orders', per_second: 0, canry: true },
      ['', '/canry', '/destination', '/per_second'],
    ],
    [
      'POST',
      '/api/v1/review/bulk',
      { action: 'discard', filter: { lane: 'a', queue: 'b' }, ids: [1], canary: true },
      ['', '/canary', '/filter/queue'],
    ],
    [
      'POST',
      '/api/v1/review/bulk/preview',
      { ids: ['x'], all: true, fliter: {} },
      ['', '/fliter', '/ids/0'],
    ],
    [
      'POST',
      '/api/v1/review/1/replay',
      { payload: 1, payload_base64: '?', destination: 'orders', headers: 5 },
      ['/destination', '/headers', '/payload', '/payload_base64'],
    ],
    [
      'PUT',
      '/api/v1/review/x/edit',
      { payload_base64: '?', destination: 'orders', not: 1 },
      ['/destination', '/id', '/not', '/payload_base64'],
    ],
    ['POST', '/api/v1/lanes/queue:orders/pause', { by: 'me', why: 'x' }, ['/by', '/why']],
    ['POST', `/api/v1/retries/x/expedite?quue=a`, { by: 'me' }, ['/by', '/message_id', '/quue']],
    [
      'PATCH',
      '/api/v1/review/groups/%20',
      { note: 5, owner: 6, nte: 1 },
      ['/note', '/nte', '/owner'],
    ],
  ] as const)('%s %s of %j', async (method, url, body, paths) => {
    const { ask } = await staged();
    const answer = await ask({ method, url, body });
    expect(answer).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } });
    const found = listAt(answer.body, 'errors').map((fault) => textAt(fault, 'path'));
    expect(found.toSorted()).toEqual(paths);
  });

  it('says what was meant by a misspelt name and a misspelt choice', async () => {
    const { post } = await staged();
    const { body } = await post('/api/v1/notifications', faultyNotification);
    const said = listAt(body, 'errors').map(
      (fault) => `${textAt(fault, 'path')} ${textAt(fault, 'message')}`,
    );
    expect(said).toContainEqual(
      expect.stringMatching(/idempotency_kye .*Did you mean 'idempotency_key'/),
    );
    expect(said).toContainEqual(expect.stringMatching(/priority .*Did you mean 'high'/));
  });

  it('holds for each item of a batch', async () => {
    const { post } = await staged();
    const pathsOf = (body: unknown) =>
      listAt(body, 'rejected')
        .filter((one) => at(one, 'index') === 1)
        .map((one) => textAt(one, 'path'))
        .toSorted();
    const good = {
      recipient: { user_id: 'u' },
      priority: 'low',
      notification: { title: 't', body: 'b' },
    };
    const created = await post('/api/v1/notifications', {
      items: [{ ...good, id: 'n1' }, faultyNotification],
    });
    expect(pathsOf(created.body)).toEqual(faultsOfNotification);
    const report = { notification_id: 'n1', device_id: 'd', attempt_number: 1 };
    for (const kind of ['failures', 'successes']) {
      const items = [report, { notification_id: 'n1', ...faultyReport, retry_after_ms: undefined }];
      const { body } = await post(`/api/v1/notifications/${kind}`, { items });
      expect(pathsOf(body)).toEqual(faultsOfReport.filter((path) => path !== '/retry_after_ms'));
    }
  });

  it('keeps the own code of what only the service finds', async () => {
    const { post } = await staged();
    const quiet_hours = { from: '25:00', to: '8', time_zone: 'X' };
    const answer = await post('/api/v1/notifications', {
      recipient: { user_id: 'u' },
      priority: 'low',
      notification: { title: 't', body: 'b' },
      quiet_hours,
    });
    expect(answer).toMatchObject({ status: 400, body: { code: 'INVALID_QUIET_HOURS' } });
    expect(listAt(answer.body, 'errors')).toHaveLength(3);
  });
});
