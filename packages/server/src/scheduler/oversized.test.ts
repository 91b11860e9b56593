import type { Received } from '@redrive/engine';
import { carriedContext } from '@redrive/engine/rabbitmq';
import { describe, expect, it } from 'vitest';
import { oversizedMessage } from './oversized.ts';

const received = (headers: Received['headers'], properties: object = {}): Received => ({
  tag: 1,
  payload: new Uint8Array(17),
  headers,
  contentType: 'application/json',
  redelivered: false,
  extra: { exchange: '', routingKey: 'q', properties },
});

const retries = oversizedMessage({
  source: 'retry.scheduled',
  carry: carriedContext,
  isDeadLetter: false,
});
const deadLetters = oversizedMessage({
  source: 'redrive.dead-letters',
  carry: carriedContext,
  isDeadLetter: true,
});

describe('a message that is too large to be stored', () => {
  it('goes to redrive.oversized with its bytes, properties and headers, and says why and from where', () => {
    const headers = { 'x-tenant': 'acme', 'x-flag': true, 'x-retry-count': 2, CC: ['everybody'] };
    const properties = { correlationId: 'c', expiration: '500', userId: 'guest' };
    const message = received(headers, properties);
    const publication = retries(message);
    expect(publication).toEqual({
      address: 'redrive.oversized',
      payload: message.payload,
      contentType: 'application/json',
      headers: {
        'x-tenant': 'acme',
        'x-retry-count': 2,
        'x-redrive-source': 'retry.scheduled',
        'x-redrive-reason': 'The message has 17 bytes, and Redrive stores at most 16777216.',
      },
      extra: { amqp: { properties: { correlationId: 'c' }, headers: { 'x-flag': true } } },
    });
    expect(publication.payload).toBe(message.payload);
  });

  it('keeps what Redrive wrote on it before, texts that came as bytes too', () => {
    const headers = {
      'x-retry-count': '3',
      'x-message-id': Buffer.from('an id'),
      'x-original-queue': 'orders',
      'x-redrive-body': 'mark',
      'x-retry-scheduler': true,
    };
    expect(retries(received(headers)).headers).toMatchObject({
      'x-retry-count': '3',
      'x-message-id': 'an id',
      'x-original-queue': 'orders',
      'x-redrive-body': 'mark',
    });
  });

  it('says of a dead letter where it died, since x-death is not carried', () => {
    const death = {
      queue: 'orders',
      reason: 'rejected',
      exchange: 'shop',
      'routing-keys': ['order.new'],
    };
    const { headers } = deadLetters(received({ 'x-death': [death], 'x-first-death-queue': 'a' }));
    expect(headers).toEqual({
      'x-original-queue': 'orders',
      'x-original-exchange': 'shop',
      'x-original-routing-key': 'order.new',
      'x-redrive-death-reason': 'rejected',
      'x-redrive-source': 'redrive.dead-letters',
      'x-redrive-reason': expect.any(String) as string,
    });
    expect(retries(received({ 'x-death': [death] })).headers).not.toHaveProperty(
      'x-original-queue',
    );
    expect(deadLetters(received({})).headers).not.toHaveProperty('x-original-queue');
  });

  it('names the headers that cannot be carried', () => {
    const carry = () => ({ context: {}, headerBytes: 0, lost: ['deep', 'deeper'] });
    const { headers } = oversizedMessage({ source: 'q', carry, isDeadLetter: false })(received({}));
    expect(headers['x-redrive-lost-headers']).toBe('deep, deeper');
  });
});
