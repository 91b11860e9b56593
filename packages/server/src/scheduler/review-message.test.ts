import type { NewItem, NewOutboxMessage, NewTask, RawItem } from '@redrive/engine';
import { describe, expect, it } from 'vitest';
import { reviewOf, reviewOfRaw } from './review-message.ts';

const NOW_MS = 1_800_000_000_000;
const FAILED_AT = '2027-01-15T08:00:00.000Z';
const id = '0f6f9a0e-1f3b-4c8e-9a53-6f2f8e3f1a11';
const options = { reviewQueue: 'manual-review.pending', nowMs: () => NOW_MS };

const task: NewTask = {
  messageId: id,
  destination: { kind: 'queue', address: 'orders' },
  lane: 'queue:orders',
  payload: new Uint8Array([0, 255]),
  status: 'failed',
  attempt: 4,
  maxAttempts: 4,
  uncounted: 0,
  delayMs: 0,
  generation: 0,
  claims: 0,
  arrived: false,
  cancelling: false,
  blocked: false,
  due: { inMs: 0 },
};

const exhausted: NewItem = {
  reason: 'EXHAUSTED',
  failure: { class: 'transient', code: 'ETIMEDOUT', message: 'connect ETIMEDOUT' },
  fingerprint: 'f',
};

const bodyOf = ({ payload }: NewOutboxMessage) =>
  JSON.parse(Buffer.from(payload).toString()) as Record<string, unknown>;

describe('the message to manual review', () => {
  it('has the fields of the contract, in their order', () => {
    const message = reviewOf(options)(task, exhausted);
    expect(message.destination).toEqual({ kind: 'queue', address: 'manual-review.pending' });
    expect(Object.entries(bodyOf(message))).toEqual([
      ['message_id', id],
      ['original_queue', 'orders'],
      ['original_payload', 'AP8='],
      ['error_reason', 'connect ETIMEDOUT'],
      ['retry_count', 3],
      ['max_retries', 3],
      ['classification', 'TRANSIENT'],
      ['failed_at', FAILED_AT],
    ]);
  });

  it('has the headers x-max-retries-exceeded, or x-review-reason, and x-original-queue', () => {
    const review = reviewOf(options);
    expect(review(task, exhausted).headers).toEqual({
      'content-type': 'application/json',
      'x-max-retries-exceeded': 'true',
      'x-original-queue': 'orders',
    });
    expect(review(task, { ...exhausted, reason: 'UNROUTABLE' }).headers).toEqual({
      'content-type': 'application/json',
      'x-review-reason': 'UNROUTABLE',
      'x-original-queue': 'orders',
    });
  });

  it('counts no less than 0', () => {
    const fresh = { ...task, attempt: 0, maxAttempts: 0 };
    expect(bodyOf(reviewOf(options)(fresh, exhausted))).toMatchObject({
      retry_count: 0,
      max_retries: 0,
    });
  });

  it.each([
    [{ class: 'business', code: 'VAT' } as const, 'VAT'],
    [{ class: 'unknown' } as const, null],
  ])(
    'gives the code where there is no text, and null where there is neither',
    (failure, reason) => {
      const body = bodyOf(reviewOf(options)(task, { ...exhausted, failure }));
      expect(body).toMatchObject({
        error_reason: reason,
        classification: failure.class.toUpperCase(),
      });
    },
  );

  it('of what goes to a URL names no queue', () => {
    const elsewhere = { ...task, destination: { kind: 'http', address: 'https://example.com/' } };
    const message = reviewOf(options)(elsewhere, exhausted);
    expect(bodyOf(message)['original_queue']).toBeNull();
    expect(message.headers).not.toHaveProperty('x-original-queue');
  });

  it('leaves out a payload with which no broker would take it', () => {
    const limit = 12 * 1024 * 1024 - 48 * 1024;
    const large = { ...task, payload: new Uint8Array(limit + 1) };
    expect(bodyOf(reviewOf(options)(large, exhausted))['original_payload']).toBeNull();
    // Nothing is longer in JSON than this, and no error is longer.
    const failure = { ...exhausted.failure, message: '\u0001'.repeat(8 * 1024) };
    const worst = { ...exhausted, failure };
    const most = reviewOf(options)({ ...task, payload: new Uint8Array(limit) }, worst);
    expect(most.payload.length).toBeLessThanOrEqual(16 * 1024 * 1024);
    expect(bodyOf(most)['original_payload']).not.toBeNull();
  });

  it('tells the present time unless told otherwise', () => {
    const before = Date.now();
    const body = bodyOf(reviewOf({ reviewQueue: 'r' })(task, exhausted));
    expect(Date.parse(body['failed_at'] as string)).toBeGreaterThanOrEqual(before);
  });
});

describe('the message to manual review of one that was never a task', () => {
  const raw: RawItem = {
    reason: 'UNREADABLE',
    failure: { class: 'technical', code: 'UNREADABLE', message: 'It is not JSON in UTF-8.' },
    fingerprint: 'f',
    messageId: id,
    source: 'retry.scheduled',
    payload: new Uint8Array([1]),
  };

  it('has its bytes, and null for what is not known', () => {
    const message = reviewOfRaw(options)(raw, {});
    expect(bodyOf(message)).toEqual({
      message_id: id,
      original_queue: null,
      original_payload: 'AQ==',
      error_reason: 'It is not JSON in UTF-8.',
      retry_count: null,
      max_retries: null,
      classification: 'TECHNICAL',
      failed_at: FAILED_AT,
    });
    expect(message.headers).toEqual({
      'content-type': 'application/json',
      'x-review-reason': 'UNREADABLE',
    });
  });

  it('has what is known', () => {
    const message = reviewOfRaw(options)(raw, { originalQueue: 'orders', retryCount: 0 });
    expect(bodyOf(message)).toMatchObject({ original_queue: 'orders', retry_count: 0 });
    expect(message.headers['x-original-queue']).toBe('orders');
  });

  it('tells the present time unless told otherwise', () => {
    const before = Date.now();
    const body = bodyOf(reviewOfRaw({ reviewQueue: 'r' })(raw, {}));
    expect(Date.parse(body['failed_at'] as string)).toBeGreaterThanOrEqual(before);
  });
});
