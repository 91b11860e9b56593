import { describe, expect, it } from 'vitest';
import { classify } from './classify.ts';
import type { ClassifyRule } from './classify-text.ts';

const coded = (code: unknown, message = 'boom', options?: ErrorOptions) =>
  Object.assign(new Error(message, options), { code });
const named = (name: string, message = 'boom', options?: ErrorOptions) =>
  Object.assign(new Error(message, options), { name });

describe('classify with rules', () => {
  const by = (rule: ClassifyRule, error: unknown) => classify(error, { rules: [rule] });
  const error = Object.assign(named('CardError', 'card declined, timeout'), {
    code: 'E_CARD',
    status: 503,
    retryAfterMs: 10,
  });

  it.each<Partial<ClassifyRule>>([
    { codes: ['X', 'E_CARD'] },
    { names: ['X', 'CardError'] },
    { names: ['Error'] },
    { statuses: [1, 503] },
    { words: ['nothing', 'Card  Declined'] },
    { codes: ['E_CARD'], names: ['CardError'], statuses: [503], words: ['timeout'] },
  ])('matches %j, which sets the class and leaves the rest', (conditions) => {
    expect(by({ ...conditions, class: 'business' }, error)).toEqual({
      ...classify(error),
      class: 'business',
    });
  });

  it.each<Partial<ClassifyRule>>([
    {},
    { codes: [] },
    { words: [] },
    { words: [''] },
    { words: [' '] },
    { codes: ['X'] },
    { names: ['X'] },
    { statuses: [500] },
    { words: ['clined'] },
    { codes: ['X'], names: ['CardError'], statuses: [503], words: ['timeout'] },
    { codes: ['E_CARD'], names: ['X'], statuses: [503], words: ['timeout'] },
    { codes: ['E_CARD'], names: ['CardError'], statuses: [500], words: ['timeout'] },
    { codes: ['E_CARD'], names: ['CardError'], statuses: [503], words: ['time'] },
  ])('does not match %j', (conditions) => {
    expect(by({ ...conditions, class: 'business' }, error)).toEqual(classify(error));
  });

  it('does not match by a name or code where there is none', () => {
    expect(by({ names: ['Error'], class: 'business' }, 'text').class).toBe('unknown');
    expect(by({ codes: ['undefined'], class: 'business' }, 'text').class).toBe('unknown');
  });

  it('takes the first that matches', () => {
    const rules: ClassifyRule[] = [
      { codes: ['X'], class: 'unknown' },
      { names: ['CardError'], class: 'technical' },
      { statuses: [503], class: 'business' },
    ];
    expect(classify(error, { rules }).class).toBe('technical');
  });

  it('sees the code that was found below or made up above', () => {
    const wrapped = new Error('x', { cause: coded('ECONNREFUSED') });
    expect(by({ codes: ['ECONNREFUSED'], class: 'technical' }, wrapped).class).toBe('technical');
    expect(by({ codes: ['HTTP_404'], class: 'transient' }, { status: 404 }).class).toBe(
      'transient',
    );
  });

  it('may give a code of its own and say that the failure consumes no attempt', () => {
    const rule: ClassifyRule = {
      words: ['snooze'],
      class: 'transient',
      code: 'SNOOZE',
      counted: false,
    };
    expect(by(rule, 'snooze')).toEqual({
      class: 'transient',
      code: 'SNOOZE',
      counted: false,
      message: 'snooze',
    });
    expect(by({ words: ['snooze'], class: 'business' }, 'snooze')).not.toHaveProperty('counted');
  });

  it('changes neither the error nor the rules', () => {
    const rule = Object.freeze<ClassifyRule>({
      words: Object.freeze(['x']),
      class: 'business',
    });
    expect(by(rule, Object.freeze({ status: 500, message: 'x' })).class).toBe('business');
  });
});
