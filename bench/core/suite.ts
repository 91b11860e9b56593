import type { Suite } from '../result.ts';
import { audit } from './audit.ts';
import { bundle, bundleSmall } from './bundle.ts';
import { criterion } from './criterion.ts';
import { deciding } from './decide.ts';
import { full, fullSignal } from './full.ts';
import { memory, memoryFailures, memoryFull } from './memory.ts';
import { success, successTrivial } from './success.ts';
import { twoFailures, twoFailuresCoded, twoFailuresCrowd } from './two-failures.ts';

export const suite: Suite = {
  name: 'core',
  about: 'the library against p-retry, cockatiel, exponential-backoff, async-retry and effect',
  cases: [
    success,
    successTrivial,
    full,
    fullSignal,
    twoFailures,
    twoFailuresCoded,
    twoFailuresCrowd,
    audit,
    deciding,
    criterion,
    memory,
    memoryFull,
    memoryFailures,
    bundle,
    bundleSmall,
  ],
};
