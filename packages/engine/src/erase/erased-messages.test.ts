import { expect, it } from 'vitest';
import { type AuditEvent, ERASED_FOR_MS } from '../ports/audit.ts';
import { ErasedMessages } from './erased-messages.ts';

const event = (id: string): AuditEvent => ({
  event_type: 'retry_scheduled',
  timestamp: '2026-01-01T00:00:00.000Z',
  message_id: id,
  exception_message: 'personal',
});

it('remembers a message for a time, and erases its events until then', () => {
  const erased = new ErasedMessages();
  erased.add('a', 1000);
  const kept = (nowMs: number) => erased.kept(event('a'), nowMs)['exception_message'];
  expect(kept(1000 + ERASED_FOR_MS - 1)).toBeNull();
  expect(kept(1000 + ERASED_FOR_MS)).toBe('personal');
});

it('forgets those first that were erased longest ago, also where one was erased again', () => {
  const erased = new ErasedMessages();
  erased.add('again', 0);
  erased.add('once', 0);
  erased.add('again', 0);
  for (let n = 0; n < 9999; n++) erased.add(`other ${n}`, 0);
  const texts = ['again', 'once'].map((id) => erased.kept(event(id), 0)['exception_message']);
  expect(texts).toEqual([null, 'personal']);
});
