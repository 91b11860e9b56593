import { ConfigError, type Fault } from '../errors.ts';
import { didYouMean, nearest, show } from './faults.ts';
import { defaultOf, type Fields, isObject, readFields, type Values } from './fields.ts';

/**
 * The options of a function, with their defaults. Throws one `ConfigError` that lists every fault. `others` are options that are
 * not data, such as a clock: they may be given, and are not looked at.
 *
 * @param what The subject of the sentence: "The options of memorySticky".
 */
export function checkOptions(
  what: string,
  options: unknown,
  fields: Fields,
  others: readonly string[] = [],
): Values {
  const faults: Fault[] = [];
  const names = [...Object.keys(fields), ...others];
  const isOther = ([name]: [string, unknown]) => others.includes(name);
  const data = isObject(options)
    ? Object.fromEntries(Object.entries(options).filter((entry) => !isOther(entry)))
    : options;
  const values = readFields(data, fields, names, '', faults);
  if (faults.length > 0) throw new ConfigError('INVALID_CONFIG', `${what} have faults:`, faults);
  for (const [name, field] of Object.entries(fields)) values[name] ??= defaultOf(field);
  return values;
}

/** Refuses what is no object, before its fields are taken out of it. */
export function checkObject(what: string, given: unknown): void {
  if (isObject(given)) return;
  const message = `${show(given)} is not an object of options.`;
  const fault: Fault = { path: '', code: 'INVALID_VALUE', message };
  throw new ConfigError('INVALID_CONFIG', `${what} has faults:`, [fault]);
}

/** Refuses what is no object, and names that do not exist. For what is called often: a good object costs no allocation. */
export function checkNames(what: string, given: unknown, names: readonly string[]): void {
  let faults: Fault[] | undefined;
  if (isObject(given)) {
    for (const name in given) {
      if (names.includes(name)) continue;
      const message = `there is no such field.${didYouMean(nearest(name, names))}`;
      (faults ??= []).push({ path: name, code: 'UNKNOWN_FIELD', message });
    }
  } else {
    const message = `${show(given)} is not an object of options.`;
    faults = [{ path: '', code: 'INVALID_VALUE', message }];
  }
  if (faults) throw new ConfigError('INVALID_CONFIG', `${what} have faults:`, faults);
}
