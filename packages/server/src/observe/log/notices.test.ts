import { pino } from 'pino';
import { expect, it } from 'vitest';
import { Notices } from './notices.ts';

function stage(missing: Record<string, string> = {}) {
  const lines: string[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line) => lines.push(line) });
  const notices = new Notices({ log, missing: new Map(Object.entries(missing)) });
  const accept = (lane: string) => notices.engineEvent({ type: 'accepted', id: 'm', lane });
  return { notices, accept, lines };
}

it('tells of what enters the inbox, without what it says', () => {
  const { notices, lines } = stage();
  notices.entered({
    fingerprint: 'f',
    lane: 'queue:orders',
    reason: 'EXHAUSTED',
    failure: { class: 'transient', message: 'card 4111' },
    count: 3,
    firstAtMs: 0,
    lastAtMs: 1,
    id: 'm-1',
  });
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    {
      level: 40,
      lane: 'queue:orders',
      reason: 'EXHAUSTED',
      count: 3,
      fingerprint: 'f',
      message_id: 'm-1',
      msg: 'entered the inbox',
    },
  ]);
});

it('tells once of each queue that nobody here delivers to', () => {
  const { accept, lines } = stage({ queue: 'RABBITMQ_URL', nats: 'NATS_URL' });
  for (const lane of ['queue:a', 'queue:a', 'http://h', 'nats:b']) accept(lane);
  expect(lines.map((line) => (JSON.parse(line) as { lane: string }).lane)).toEqual([
    'queue:a',
    'nats:b',
  ]);
  expect(lines[0]).toContain('RABBITMQ_URL');
  expect(lines[1]).toContain('NATS_URL');
});

it('says nothing of queues where there is a broker, here or elsewhere', () => {
  const { accept, lines } = stage();
  accept('queue:a');
  expect(lines).toEqual([]);
});
