import { expect, it } from 'vitest';
import { eraseEvent } from './audit-erase.ts';

const event = {
  event_type: 'retry_attempt',
  timestamp: '2025-01-01T00:00:00.000Z',
  operation: 'https://a.example',
  exception_type: 'Error',
  exception_message: 'Eva',
  tenant_id: 'Eva',
  correlation_id: 'Eva',
  trace_id: 'Eva',
  redrive: { instance: 'a', run: 1, sequence: 2, message_id: 'm' },
};

it('takes the texts out of an event, says when, and leaves all else', () => {
  const before = structuredClone(event);
  expect(eraseEvent(event, 5)).toEqual({
    ...event,
    exception_message: null,
    tenant_id: null,
    correlation_id: null,
    trace_id: null,
    erased_at: '1970-01-01T00:00:00.005Z',
  });
  expect(event).toEqual(before);
});

it('takes the last text of what was given up, and the details of an action', () => {
  const given = { event_type: 'retry_exhausted', timestamp: '', final_exception_message: 'Eva' };
  expect(eraseEvent(given, 0)).toMatchObject({ final_exception_message: null });
  const action = {
    event_type: 'operator_action',
    timestamp: '',
    by: 'ann',
    details: { to: 'Eva' },
  };
  expect(eraseEvent(action, 0)).toMatchObject({ by: 'ann', details: null });
});

it('leaves an event alone that has nothing to erase, also the second time', () => {
  const once = eraseEvent(event, 5);
  expect(eraseEvent(once, 9)).toBe(once);
});
