import { describe, test } from 'vitest';
import { repositorySuite } from '../../testing/index.ts';
import { memoryNotifications } from './index.ts';

describe('the repository in memory', () => {
  const cases = repositorySuite({
    atomic: true,
    complete: true,
    durable: false,
    damaging: false,
    async open() {
      const repository = memoryNotifications();
      await repository.open();
      return { repository, close: () => repository.close() };
    },
  });
  for (const { name, skip, run: assertCase } of cases) {
    test.skipIf(skip !== undefined)(`${name}`, () => assertCase());
  }
});
