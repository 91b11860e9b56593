import { describe, expect, it } from 'vitest';
import { isEngineError } from './errors.ts';
import { loadPeer } from './peer.ts';

describe('loadPeer', () => {
  const failing = (code: string, message: string) =>
    loadPeer('The store', 'pg', () => Promise.reject(Object.assign(new Error(message), { code })));

  it('passes on what the package itself fails with', async () => {
    const broken = failing(
      'ERR_MODULE_NOT_FOUND',
      "Cannot find package 'pg-types' imported from pg",
    );
    await expect(broken).rejects.toThrow('pg-types');
    await expect(broken).rejects.not.toSatisfy(isEngineError);
    await expect(failing('ERR_OTHER', "'pg' is broken")).rejects.not.toSatisfy(isEngineError);
  });

  it('knows the words of CommonJS too', async () => {
    const missing = failing('MODULE_NOT_FOUND', "Cannot find module 'pg'");
    await expect(missing).rejects.toMatchObject({
      code: 'PEER_MISSING',
      message: 'The store needs the package pg, which is not installed. Run: npm install pg',
    });
  });
});
