import { expect, test } from 'vitest';
import { queueNameOf } from './address.ts';

test('an address of up to 255 bytes is its own queue name', () => {
  for (const address of ['orders', 'a'.repeat(255), 'é'.repeat(127)]) {
    expect(queueNameOf(address)).toBe(address);
  }
});

test('a longer address keeps its first 200 bytes and gets a hash', () => {
  const name = queueNameOf(`https://example.com/${'a'.repeat(300)}`);
  expect(name).toMatch(/^https:\/\/example\.com\/a{180}#[0-9a-f]{32}$/);
  // Part of the identity of stored tasks: another value would make every one of them new.
  expect(queueNameOf('a'.repeat(256))).toBe(`${'a'.repeat(200)}#02d7160d77e18c6447be80c2e355c7ed`);
});

test('long addresses that differ only at the end have different names', () => {
  const address = `https://example.com/${'a'.repeat(300)}`;
  expect(queueNameOf(`${address}1`)).not.toBe(queueNameOf(`${address}2`));
});

test('no character is cut in two', () => {
  for (const pad of ['', 'a', 'aa']) {
    const name = queueNameOf(`${pad}${'€'.repeat(200)}`);
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
    expect(name).not.toContain('\uFFFD');
    expect(name).toMatch(/^a*€{66}#/);
  }
});
