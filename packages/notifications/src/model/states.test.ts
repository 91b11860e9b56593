import { describe, expect, it } from 'vitest';
import { deliveryStates } from './notification.ts';
import { addedMoves, documentMoves, mayMove, walk } from './states.ts';

describe('the state diagram', () => {
  it.each([
    ['[*]', 'DeliveryFailed', 'Notification delivery fails'],
    ['DeliveryFailed', 'AssessingRetry', 'Evaluate retry eligibility'],
    ['AssessingRetry', 'SchedulingRetry', 'Eligible for retry'],
    ['AssessingRetry', 'PermanentFailure', 'Max retries reached'],
    ['SchedulingRetry', 'AwaitingRetry', 'Delay applied based on backoff'],
    ['AwaitingRetry', 'Retrying', 'Retry timer expires'],
    ['Retrying', 'DeliverySucceeded', 'Retry succeeds'],
    ['Retrying', 'DeliveryFailed', 'Retry fails'],
  ] as const)('%s --> %s: %s', (...[from, to]) => {
    expect(mayMove(from, to)).toBe(true);
    expect(documentMoves).toContainEqual([from, to]);
  });

  it('has no other arrow but those that were added, each for a case of its own', () => {
    const known = [...documentMoves, ...addedMoves].map((move) => move.join(' '));
    expect(new Set(known).size).toBe(known.length);
    for (const from of ['[*]', ...deliveryStates] as const) {
      for (const to of deliveryStates) {
        expect(mayMove(from, to)).toBe(known.includes(`${from} ${to}`));
      }
    }
    expect(documentMoves).toHaveLength(8);
    expect(addedMoves).toHaveLength(12);
  });

  it('ends: nothing leaves DeliverySucceeded and Expired', () => {
    for (const to of deliveryStates) {
      expect(mayMove('DeliverySucceeded', to)).toBe(false);
      expect(mayMove('Expired', to)).toBe(false);
    }
  });

  it('is walked arrow by arrow, and refuses what has none', () => {
    const way = ['DeliveryFailed', 'AssessingRetry', 'SchedulingRetry', 'AwaitingRetry'] as const;
    expect(walk('[*]', ...way)).toBe('AwaitingRetry');
    expect(() => walk('DeliverySucceeded', ...way)).toThrow(
      expect.objectContaining({
        code: 'ILLEGAL_MOVE',
        message: 'A delivery cannot go from DeliverySucceeded to DeliveryFailed.',
      }),
    );
    expect(() => walk('[*]', 'DeliveryFailed', 'AwaitingRetry')).toThrow('AwaitingRetry');
  });
});
