import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newDelivery, newRecord, T0 } from '../../testing/repository/fixtures.ts';
import { documentOf, recordIn } from './documents.ts';

describe('a document', () => {
  it('has the names of the contract, and dates', () => {
    const record = newRecord({
      id: 'n-1',
      notification: {
        recipient: { userId: 'u', deviceIds: ['a.b'] },
        idempotencyKey: 'k',
        data: { camelCase: { 'a.b': 1 } },
      },
      deliveries: { 'a.b': newDelivery({ dueAtMs: T0, failure: { class: 'transient' } }) },
    });
    expect(documentOf(JSON.stringify(record), 3, 'w')).toEqual({
      _id: 'n-1',
      version: 3,
      writer: 'w',
      recipient: { user_id: 'u', device_ids: ['a.b'] },
      priority: 'high',
      notification: { title: 'Your order', body: 'It was sent.' },
      data: { camelCase: { 'a%2Eb': 1 } },
      source: 'orders',
      idempotency_key: 'k',
      ttl: 86_400_000,
      expires_at: new Date(T0 + 86_400_000),
      deliveries: [
        {
          device_id: 'a.b',
          state: 'AwaitingRetry',
          attempt: 1,
          retry_count: 0,
          counts_from: 0,
          due_at: new Date(T0),
          unpublished: [],
          failure: { class: 'transient' },
        },
      ],
      status: 'pending',
      retry_count: 0,
      wake_at: new Date(T0 + 3_600_000),
      created_at: new Date(T0),
      updated_at: new Date(T0),
    });
  });

  it('gives back any names and values, also of fields that nobody knows', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (data, later) => {
        const record = { ...newRecord({ notification: { data } }), later: { data, later } };
        const text = JSON.stringify(record);
        const again = recordIn(documentOf(text, 1, 'w'));
        expect(again).toEqual({ ...(JSON.parse(text) as object), version: 1 });
      }),
    );
  });
});
