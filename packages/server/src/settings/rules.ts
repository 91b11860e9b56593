import type { ClassifyRule, Fault, FailureClass } from 'redrive';
import { didYouMean, nearest } from 'redrive/internal';

const MAX_RULES = 1000;
const MAX_VALUES = 1000;
const classes: readonly FailureClass[] = ['transient', 'business', 'technical', 'unknown'];
const conditions = ['codes', 'names', 'statuses', 'words'] as const;
const fields: readonly string[] = [...conditions, 'class', 'code', 'counted'];

/** Rules of the user's own for the texts of dead letters. */
export function readRules(data: unknown, faults: Fault[]): ClassifyRule[] {
  if (data === undefined) return [];
  if (!Array.isArray(data) || data.length > MAX_RULES) {
    add('rules', `is not a list of at most ${MAX_RULES} rules.`);
    return [];
  }
  data.forEach((rule: unknown, index) => check(rule, `rules.${index}`));
  return data as ClassifyRule[];

  function check(rule: unknown, path: string): void {
    if (Object.prototype.toString.call(rule) !== '[object Object]') {
      add(path, "is not a rule such as { words: ['out of stock'], class: 'business' }.");
      return;
    }
    const given = rule as Record<string, unknown>;
    for (const name of Object.keys(given)) {
      if (fields.includes(name)) continue;
      const hint = didYouMean(nearest(name, fields));
      add(`${path}.${name}`, `there is no such field.${hint}`, 'UNKNOWN_FIELD');
    }
    if (!classes.includes(given['class'] as FailureClass)) {
      add(`${path}.class`, `is not one of ${classes.join(', ')}.`);
    }
    if (given['code'] !== undefined && typeof given['code'] !== 'string') {
      add(`${path}.code`, 'is not a text.');
    }
    if (given['counted'] !== undefined && given['counted'] !== false) {
      add(`${path}.counted`, 'is not false: leave it out where failures count.');
    }
    const listed = conditions.filter((name) => given[name] !== undefined);
    if (listed.length === 0) add(path, `matches nothing: give ${conditions.join(', ')}.`);
    for (const name of listed) {
      const wanted = name === 'statuses' ? 'number' : 'string';
      if (isListOf(given[name], wanted)) continue;
      const what = name === 'statuses' ? 'numbers' : 'texts';
      add(`${path}.${name}`, `is not a list of 1 to ${MAX_VALUES} ${what}.`);
    }
  }

  function add(path: string, message: string, code: Fault['code'] = 'INVALID_VALUE'): void {
    faults.push({ path, code, message });
  }
}

function isListOf(value: unknown, type: 'number' | 'string'): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= MAX_VALUES &&
    value.every((one) => typeof one === type && String(one).trim() !== '')
  );
}
