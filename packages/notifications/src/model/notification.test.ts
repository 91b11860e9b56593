import { describe, expect, it } from 'vitest';
import { deliveryStates, priorities, statuses } from './notification.ts';

describe('the words of a notification', () => {
  it('are those of the contract', () => {
    expect(priorities).toEqual(['critical', 'high', 'medium', 'low']);
    expect(statuses).toContain('skipped');
    expect(deliveryStates).toHaveLength(9);
  });
});
