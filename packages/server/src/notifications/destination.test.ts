import type { Broker, Delivery, Published } from '@redrive/engine';
import type { DeliverRequest } from '@redrive/notifications';
import type { Logger } from 'pino';
import { systemClock } from 'redrive/internal';
import { describe, expect, it } from 'vitest';
import { readOutcome } from './delivery-outcome.ts';
import { DeliveryTrouble } from './delivery-trouble.ts';
import { deliverTo, destinationOf } from './destination.ts';

const failure = { class: 'transient', code: 'HTTP_410', message: 'gone' } as const;

describe('what a receiver answers', () => {
  it.each([
    [{ type: 'done' }, { outcome: 'delivered' }],
    // The status is that of the receiver, and says nothing about the token.
    [
      { type: 'failed', failure },
      { outcome: 'failed', errorCode: 'DELIVERY_HTTP_410', errorMessage: 'gone' },
    ],
    [
      { type: 'failed', failure, answer: 'text' },
      { outcome: 'failed', errorCode: 'DELIVERY_HTTP_410', errorMessage: 'gone' },
    ],
    [
      {
        type: 'failed',
        failure,
        answer:
          '{"error_code":"Unregistered","retry_after_ms":5,"platform_response":{"status":410}}',
      },
      {
        outcome: 'failed',
        errorCode: 'Unregistered',
        retryAfterMs: 5,
        platformResponse: { status: 410 },
      },
    ],
    // Nothing was sent: the attempt is not spent.
    [
      { type: 'failed', failure: { ...failure, notExecuted: true } },
      { outcome: 'not_sent', delayMs: 5000 },
    ],
    [
      { type: 'failed', failure: { ...failure, notExecuted: true, retryAfterMs: 60_000 } },
      { outcome: 'not_sent', delayMs: 60_000 },
    ],
  ] as const)('%j is %j', (outcome, delivered) => {
    expect(readOutcome(outcome)).toEqual(delivered);
  });
});

const request: DeliverRequest = {
  notificationId: 'n1',
  notification: {
    recipient: { userId: 'u' },
    priority: 'high',
    notification: { title: 't', body: 'b' },
    source: 's',
    idempotencyKey: 'k',
    ttlMs: 1000,
    expiresAtMs: 2000,
  },
  deviceId: 'dé',
  attempt: 2,
  collapseKey: 'n1:dé',
  signal: new AbortController().signal,
};

function brokerOf(published: Published, isReady = true) {
  const sent: unknown[] = [];
  const broker = {
    kind: 'queue',
    isReady,
    publish: (messages: readonly unknown[]) => {
      sent.push(...messages);
      return [Promise.resolve(published)];
    },
  } as unknown as Broker;
  const parts = {
    http: { urgent: {} as Delivery, bulk: {} as Delivery },
    brokers: new Map([['queue', broker]]),
    clock: systemClock,
    timeoutMs: 100,
  };
  return { sent, deliver: deliverTo('queue:push', parts) };
}

describe('a broker', () => {
  it('takes a retry over, with all that its reader needs', async () => {
    const { sent, deliver } = brokerOf({ outcome: 'confirmed' });
    expect(await deliver(request)).toEqual({ outcome: 'handed_over' });
    expect(sent).toMatchObject([
      {
        address: 'push',
        headers: { 'x-notification-id': 'n1', 'x-device-id': 'd%C3%A9', 'x-attempt-number': 2 },
      },
    ]);
    const { payload } = sent[0] as { payload: Buffer };
    expect(JSON.parse(payload.toString())).toMatchObject({
      notification_id: 'n1',
      device_id: 'dé',
      attempt_number: 2,
      priority: 'high',
    });
  });

  it('that does not take it spends no attempt, one that never will does', async () => {
    const away = { outcome: 'away', failure: { class: 'transient' } } as const;
    expect(await brokerOf(away).deliver(request)).toMatchObject({ outcome: 'not_sent' });
    expect(await brokerOf({ outcome: 'confirmed' }, false).deliver(request)).toMatchObject({
      outcome: 'not_sent',
    });
    expect(await brokerOf({ outcome: 'unroutable' }).deliver(request)).toMatchObject({
      outcome: 'failed',
      errorCode: 'UNROUTABLE',
    });
  });
});

it('a destination is a URL, or a kind and an address', () => {
  expect(destinationOf('https://a.example/x')).toEqual({
    kind: 'http',
    address: 'https://a.example/x',
  });
  expect(destinationOf('kafka:a:b')).toEqual({ kind: 'kafka', address: 'a:b' });
});

it('without a destination a retry waits', async () => {
  const deliver = deliverTo(undefined, {
    http: { urgent: {} as Delivery, bulk: {} as Delivery },
    brokers: new Map(),
    clock: systemClock,
    timeoutMs: 1,
  });
  expect(await deliver(request)).toEqual({ outcome: 'not_sent', delayMs: 60_000 });
});

describe('A receiver that cannot be reached', () => {
  it('is told once in the log, and as long as it lasts, with the cause and the setting', async () => {
    const logged: string[] = [];
    const log = { warn: say('warn'), info: say('info') } as unknown as Pick<
      Logger,
      'warn' | 'info'
    >;
    function say(level: string) {
      return (text: string) => void logged.push(`${level}: ${text}`);
    }
    const url = 'http://ada:secret@127.0.0.1:9/deliver';
    const trouble = new DeliveryTrouble(url, log);
    const refused = {
      type: 'failed',
      failure: { ...failure, message: 'connect ECONNREFUSED 127.0.0.1:9', notExecuted: true },
    } as const;
    const outcomes = [refused, refused, { type: 'done' } as const, refused];
    const http = { deliver: async () => outcomes.shift() } as unknown as Delivery;
    const parts = {
      http: { urgent: http, bulk: http },
      brokers: new Map(),
      clock: systemClock,
      timeoutMs: 1000,
      trouble,
    };
    const deliver = deliverTo(url, parts);
    expect(await deliver(request)).toEqual({ outcome: 'not_sent', delayMs: 5000 });
    expect(trouble.trouble).toMatch(
      /NOTIFICATION_DELIVERY \(http:.*127\.0\.0\.1:9\/deliver\): connect ECONNREFUSED 127\.0\.0\.1:9\. They wait/,
    );
    expect(trouble.trouble).not.toContain('secret');
    await deliver(request);
    expect(logged).toHaveLength(1);
    await deliver(request);
    expect(trouble.trouble).toBeUndefined();
    expect(logged.map((line) => line.slice(0, 5))).toEqual(['warn:', 'info:']);
    // A stop cuts deliveries off: that is no trouble of the receiver.
    const stopped = AbortSignal.abort();
    await deliver({ ...request, signal: stopped });
    expect(trouble.trouble).toBeUndefined();
  });

  it('is kept for each lane, and logged at most once a minute', () => {
    const logged: string[] = [];
    const log = {
      warn: () => void logged.push('warn'),
      info: () => void logged.push('info'),
    } as unknown as Pick<Logger, 'warn' | 'info'>;
    const trouble = new DeliveryTrouble('queue:pushes', log);
    trouble.notSent('urgent', 'away', 0);
    trouble.sent('bulk', 1);
    expect(trouble.trouble).toContain('away');
    // A receiver that takes every second request.
    for (let ms = 10; ms < 60_000; ms += 1000) {
      trouble.sent('urgent', ms);
      expect(trouble.trouble).toBeUndefined();
      trouble.notSent('urgent', 'away', ms + 500);
    }
    expect(logged).toEqual(['warn', 'info']);
    // What was held back is said once it may be.
    trouble.notSent('urgent', 'away', 60_000);
    expect(logged).toEqual(['warn', 'info', 'warn']);
  });

  it('is told of a queue without its broker', async () => {
    const log = { warn: () => undefined, info: () => undefined };
    const trouble = new DeliveryTrouble('queue:pushes', log);
    const http = {} as Delivery;
    const parts = {
      http: { urgent: http, bulk: http },
      brokers: new Map(),
      clock: systemClock,
      timeoutMs: 1000,
      trouble,
    };
    await deliverTo('queue:pushes', parts)(request);
    expect(trouble.trouble).toContain('no broker for queue: destinations is configured');
  });
});

it('a retry is posted over the connections of its lane', async () => {
  const posted: string[] = [];
  const over = (lane: string) =>
    ({
      kind: 'http',
      deliver: async () => {
        posted.push(lane);
        return { type: 'done' };
      },
    }) as Delivery;
  const deliver = deliverTo('http://a.example/x', {
    http: { urgent: over('urgent'), bulk: over('bulk') },
    brokers: new Map(),
    clock: systemClock,
    timeoutMs: 1000,
  });
  for (const priority of ['critical', 'high', 'medium', 'low'] as const) {
    const notification = { ...request.notification, priority };
    expect(await deliver({ ...request, notification })).toEqual({ outcome: 'delivered' });
  }
  expect(posted).toEqual(['urgent', 'urgent', 'bulk', 'bulk']);
});
