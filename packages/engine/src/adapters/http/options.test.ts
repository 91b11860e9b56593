import { isConfigError } from 'redrive';
import { describe, expect, it } from 'vitest';
import { type HttpOptions, readOptions } from './options.ts';

function faultsOf(options: unknown): string[] {
  try {
    readOptions(options as HttpOptions);
  } catch (error) {
    if (!isConfigError(error) || error.code !== 'INVALID_CONFIG') throw error;
    return error.faults.map(({ path }) => path);
  }
  return [];
}

describe('the options of an HTTP delivery', () => {
  it('can be left out', () => {
    expect(readOptions()).toMatchObject({
      maxConnections: 1024,
      maxConnectionsPerOrigin: 128,
      idleMs: 4000,
    });
  });

  it('take durations as texts', () => {
    expect(readOptions({ idle: '2s' }).idleMs).toBe(2000);
  });

  it('are checked all at once', () => {
    const options = {
      allow: ['10.0.0.0/99'],
      secrets: {
        good: { bearer: 'a', origins: ['https://a.example'] },
        bad: { bearer: '', origins: ['https://a.example'] },
        anywhere: { bearer: 'a' },
      },
      maxConnections: 0,
      idle: -1,
      tls: 'ca',
      resolve: 'dns',
      maxSockets: 3,
    };
    expect(faultsOf(options)).toEqual([
      'maxConnections',
      'idle',
      'maxSockets',
      'allow.0',
      'secrets.bad',
      'secrets.anywhere',
      'tls',
      'resolve',
    ]);
    expect(faultsOf({ public: 'no' })).toEqual(['public']);
    expect(faultsOf({ public: false, allow: ['public'] })).toEqual([]);
    expect(faultsOf({ secrets: 'hunter2' })).toEqual(['secrets']);
    expect(faultsOf({ secrets: () => undefined })).toEqual([]);
  });
});
