import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { readAllow } from './allow.ts';
import { guardedLookup, type Resolve } from './lookup.ts';

const { refusal: publicOnly } = readAllow(undefined, true, []);

function all(resolve: Resolve, host = 'example.com'): Promise<unknown> {
  const lookup = guardedLookup(publicOnly, resolve);
  return promisify(lookup)(host, { all: true });
}

describe('a guarded lookup', () => {
  it('hands on what was found, in its order, with the families', async () => {
    expect(await all(() => Promise.resolve(['2606:4700::1', '1.1.1.1']))).toEqual([
      { address: '2606:4700::1', family: 6 },
      { address: '1.1.1.1', family: 4 },
    ]);
  });

  it('gives one address to those who want one', async () => {
    const lookup = guardedLookup(publicOnly, () => Promise.resolve(['1.1.1.1', '8.8.8.8']));
    const found = await new Promise((resolve) => {
      lookup('example.com', {}, (error, address, family) => resolve([error, address, family]));
    });
    expect(found).toEqual([null, '1.1.1.1', 4]);
  });

  it('leaves out what is not allowed, so that it cannot be connected to', async () => {
    expect(
      await all(() => Promise.resolve(['10.0.0.1', '1.1.1.1', '::ffff:127.0.0.1', 'fe80::1%1'])),
    ).toEqual([{ address: '1.1.1.1', family: 4 }]);
  });

  it('refuses a host with none but forbidden addresses, and does not tell them', async () => {
    const refused = await all(() => Promise.resolve(['10.1.2.3', '::1'])).catch(
      (error: unknown) => error,
    );
    expect(refused).toMatchObject({
      code: 'ADDRESS_REFUSED',
      message: expect.stringContaining('private'),
    });
    expect((refused as Error).message).not.toContain('10.1.2.3');
  });

  it('does not find a host without addresses, or with something else instead', async () => {
    await expect(all(() => Promise.resolve([]))).rejects.toMatchObject({ code: 'ENOTFOUND' });
    await expect(all(() => Promise.resolve(['no address']))).rejects.toMatchObject({
      code: 'ENOTFOUND',
    });
  });

  it('hands on the error of the resolver, however it comes', async () => {
    const error = Object.assign(new Error('later'), { code: 'EAI_AGAIN' });
    await expect(all(() => Promise.reject(error))).rejects.toBe(error);
    await expect(
      all(() => {
        throw error;
      }),
    ).rejects.toBe(error);
  });

  it('asks once for all who want to know the same at the same time, and again later', async () => {
    let asked = 0;
    const lookup = promisify(
      guardedLookup(publicOnly, () => {
        asked++;
        return Promise.resolve(['1.1.1.1']);
      }),
    );
    await Promise.all([
      lookup('a', { all: true }),
      lookup('a', { all: true }),
      lookup('b', { all: true }),
    ]);
    expect(asked).toBe(2);
    await lookup('a', { all: true });
    expect(asked).toBe(3);
  });

  it('tries at most 16 addresses', async () => {
    const many = Array.from({ length: 100 }, (_, i) => `1.1.1.${i}`);
    expect(await all(() => Promise.resolve(many))).toHaveLength(16);
  });

  it('asks the system by default', async () => {
    const lookup = promisify(guardedLookup(publicOnly));
    await expect(lookup('localhost', { all: true })).rejects.toMatchObject({
      code: 'ADDRESS_REFUSED',
    });
  });
});
