import { expect, it } from 'vitest';
import { redisDelayQueue, redisIdempotency, redisSticky } from './index.ts';

const bad = [
  'redis://u:secret@host:99999',
  'redis://u:se/cret@host:6379',
  'redis://u:secret%zz@host:6379',
  'http://u:secret@host',
];

it.each(bad)('refuses %s at once, and repeats no password', (url) => {
  const makers = [
    () => redisDelayQueue({ url }),
    () => redisDelayQueue({ cluster: [url] }),
    () => redisIdempotency(url),
    () => redisSticky(url),
  ];
  for (const make of makers) {
    let error: Error & { code?: string } = new Error('nothing was thrown');
    try {
      make();
    } catch (thrown) {
      error = thrown as Error;
    }
    expect(error.code).toBe('INVALID_CONFIG');
    expect(error.message).toMatch(/must begin with redis:|cannot be read/);
    expect(error.message).not.toMatch(/secret|se\/cret/);
    expect(error.cause).toBeUndefined();
  }
});
