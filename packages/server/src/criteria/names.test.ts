import { expect, it } from 'vitest';
import { unknownCriterion } from './names.ts';

const allowed = 'The criteria are isRetryDelayElapsed, isMaxRetriesExceeded, hasRetriesAvailable.';

it.each([
  [
    'isRetryDelayElapse',
    `There is no criterion 'isRetryDelayElapse'. ${allowed} Did you mean 'isRetryDelayElapsed'?`,
  ],
  ['canRetry', `There is no criterion 'canRetry'. ${allowed}`],
  [undefined, `There is no criterion 'undefined'. ${allowed}`],
  ['x'.repeat(5000), `There is no criterion '${'x'.repeat(100)}'. ${allowed}`],
])('says of a name which ones there are', (name, sentence) => {
  expect(unknownCriterion(name)).toBe(sentence);
});

it('says of the function where it belongs, and which criterion knows the same', () => {
  expect(unknownCriterion('nextRetryTime')).toMatch(
    /^'nextRetryTime' is a function, not a criterion: .* isRetryDelayElapsed /,
  );
});
