import { deepEqual, equal } from 'node:assert/strict';
import { oddTexts, T0 } from './fixtures.ts';
import type { Cases } from './repository-suite.ts';

const reason = 'Unregistered';

export const deviceCases: Cases = {
  'knows since when a device is inactive, and nothing of others': async ({ repository }) => {
    await repository.deactivate([
      { deviceId: 'a', sinceMs: T0, reason },
      { deviceId: 'b', sinceMs: T0 + 1, reason: 'ünï\0\ud800' },
    ]);
    deepEqual(await repository.inactiveSince(['b', 'c', 'a', 'b', 'A', '', 'a\0']), [
      T0 + 1,
      undefined,
      T0,
      T0 + 1,
      undefined,
      undefined,
      undefined,
    ]);
  },

  'keeps the later time, whichever comes first': async ({ repository }) => {
    for (const sinceMs of [T0 + 1, T0 + 3, T0 + 2]) {
      await repository.deactivate([{ deviceId: 'a', sinceMs, reason }]);
    }
    deepEqual(await repository.inactiveSince(['a']), [T0 + 3]);
    await repository.deactivate([
      { deviceId: 'a', sinceMs: T0 + 9, reason },
      { deviceId: 'b', sinceMs: T0 + 9, reason },
      { deviceId: 'a', sinceMs: T0 + 8, reason },
      { deviceId: 'b', sinceMs: T0 + 10, reason },
    ]);
    deepEqual(await repository.inactiveSince(['a', 'b']), [T0 + 9, T0 + 10]);
  },

  'forgets a device that is active again, and no other': async ({ repository }) => {
    const devices = ['a', 'b'].map((deviceId) => ({ deviceId, sinceMs: T0, reason }));
    await repository.deactivate(devices);
    await repository.activate(['a', 'unknown', '', 'x\0', 'a']);
    deepEqual(await repository.inactiveSince(['a', 'b']), [undefined, T0]);
    await repository.deactivate([{ deviceId: 'a', sinceMs: T0 - 5, reason }]);
    deepEqual(await repository.inactiveSince(['a']), [T0 - 5]);
  },

  'keeps odd ids apart': async ({ repository }) => {
    const devices = oddTexts.map((deviceId, i) => ({ deviceId, sinceMs: T0 + i, reason }));
    await repository.deactivate(devices);
    deepEqual(
      await repository.inactiveSince(oddTexts),
      oddTexts.map((_, i) => T0 + i),
    );
    await repository.activate(oddTexts);
    equal(
      (await repository.inactiveSince(oddTexts)).every((one) => one === undefined),
      true,
    );
  },
};
