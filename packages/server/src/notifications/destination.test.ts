import type { Broker, Delivery, Published } from '@redrive/engine';
import type { DeliverRequest } from '@redrive/notifications';
import { systemClock } from 'redrive/internal';
import { describe, expect, it } from 'vitest';
import { readOutcome } from './delivery-outcome.ts';
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
    http: {} as Delivery,
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
    http: {} as Delivery,
    brokers: new Map(),
    clock: systemClock,
    timeoutMs: 1,
  });
  expect(await deliver(request)).toEqual({ outcome: 'not_sent', delayMs: 60_000 });
});
