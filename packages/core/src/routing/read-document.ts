import type { ErrorCode, Fault } from '../errors.ts';
import { nearest, show } from '../options/faults.ts';
import { isObject, joinPath, readValue, type Values } from '../options/fields.ts';
import type { RoutingField, RoutingFields } from './routing-fields.ts';

const MAX_TEXT = 200;

/** Conditions as they are kept: each key with the texts that match. A list of pairs, so that `__proto__` is a key like others. */
export type Conditions = readonly (readonly [key: string, values: readonly string[]])[];

/** The values of an object that make sense, by the table. Each of the others becomes a fault. Defaults are filled in. */
export function readDocument(
  data: unknown,
  fields: RoutingFields,
  path: string,
  faults: Fault[],
): Values {
  const values: Values = {};
  if (!isObject(data)) {
    add(faults, path, 'INVALID_VALUE', `${show(data)} is not an object.`);
    return values;
  }
  const names = Object.keys(fields);
  for (const name of Object.keys(data)) {
    // A file may name its schema, so that an editor can help.
    if (name === '$schema' && path === '') {
      if (typeof data[name] === 'string') continue;
      add(faults, name, 'INVALID_VALUE', `${show(data[name])} is not a text.`);
      continue;
    }
    if (Object.hasOwn(fields, name)) continue;
    const near = nearestName(name, names);
    const hint = near === undefined ? '' : ` Did you mean '${near}'?`;
    add(faults, joinPath(path, cut(name)), 'UNKNOWN_FIELD', `There is no such field.${hint}`);
  }
  for (const name of names) {
    const field = fields[name] as RoutingField;
    const value = Object.hasOwn(data, name) ? data[name] : undefined;
    const at = joinPath(path, name);
    if (value === undefined) {
      if (field.required) add(faults, at, 'INVALID_VALUE', 'This field is required.');
      if ('default' in field) values[name] = field.default;
    } else values[name] = readField(field, value, at, faults);
  }
  return values;
}

export function add(faults: Fault[], path: string, code: ErrorCode, message: string): void {
  faults.push({ path, code, message });
}

/** The text that a condition compares, or undefined for what is no scalar. */
export function scalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}

function readField(field: RoutingField, value: unknown, path: string, faults: Fault[]): unknown {
  const refuse = (wanted: string) => {
    add(faults, path, 'INVALID_VALUE', `${show(value)} is not ${wanted}.`);
  };
  switch (field.kind) {
    case 'integer':
    case 'number':
    case 'boolean':
    case 'choice':
      return readValue(field, value, path, faults);
    case 'text': {
      const { pattern, maxLength } = field;
      const fits = typeof value === 'string' && value.length <= maxLength;
      if (fits && new RegExp(pattern).test(value)) return value;
      return refuse(`a text of the form ${pattern} with at most ${maxLength} characters`);
    }
    case 'object':
      return readDocument(value, field.of, path, faults);
    case 'list': {
      const max = field.max ?? 0;
      if (!isListUpTo(value, max)) return refuse(`a list of at most ${max} objects`);
      return Array.from(value, (item, i) => readDocument(item, field.of, `${path}.${i}`, faults));
    }
    case 'weights':
      return isObject(value) && Object.keys(value).length <= field.max
        ? readWeights(value, path, faults)
        : refuse(`an object of at most ${field.max} weights by name`);
    case 'texts':
      return isListUpTo(value, field.max)
        ? readTexts(value, path, faults)
        : refuse(`a list of at most ${field.max} texts, numbers or booleans`);
    case 'conditions':
      return isObject(value) && Object.keys(value).length <= field.max
        ? readConditions(value, field.maxValues, path, faults)
        : refuse(`an object of at most ${field.max} conditions`);
    case 'anything':
      return undefined;
  }
}

const weightField: RoutingField = { kind: 'integer', min: 0, max: 100 };
const providerName = /^[a-z0-9_]{1,100}$/;

function readWeights(data: Values, path: string, faults: Fault[]): [string, number][] {
  return Object.keys(data).map((name) => {
    const at = joinPath(path, cut(name));
    if (!providerName.test(name)) {
      add(
        faults,
        at,
        'INVALID_VALUE',
        `${show(name)} is not a name of the form ^[a-z0-9_]+$ with at most 100 characters.`,
      );
    }
    return [name, readField(weightField, data[name], at, faults) as number];
  });
}

function readConditions(
  data: Values,
  maxValues: number,
  path: string,
  faults: Fault[],
): Conditions {
  return Object.keys(data).map((key) => {
    const at = joinPath(path, cut(key));
    const value = data[key];
    if (key === '' || key.length > MAX_TEXT) {
      add(faults, at, 'INVALID_VALUE', `${show(key)} is not a key of 1 to ${MAX_TEXT} characters.`);
    }
    if (!Array.isArray(value)) return [key, readTexts([value], at, faults, true)] as const;
    if (value.length <= maxValues) return [key, readTexts(value, at, faults)] as const;
    const limit = `at most ${maxValues} texts, numbers or booleans`;
    add(faults, at, 'INVALID_VALUE', `${show(value)} is not a list of ${limit}.`);
    return [key, []] as const;
  });
}

/** The texts, without those that are there twice. */
function readTexts(list: unknown[], path: string, faults: Fault[], isSingle = false): string[] {
  const texts = new Set<string>();
  for (let i = 0; i < list.length; i++) {
    const item = list[i];
    const text = scalarText(item);
    if (text !== undefined && text.length <= MAX_TEXT && Number.isFinite(asNumber(item))) {
      texts.add(text);
      continue;
    }
    const wanted = `a text of at most ${MAX_TEXT} characters, a number or a boolean`;
    const at = isSingle ? path : `${path}.${i}`;
    add(faults, at, 'INVALID_VALUE', `${show(item)} is not ${wanted}.`);
  }
  return [...texts];
}

/** JSON has no NaN and no Infinity. Everything that is no number passes. */
function asNumber(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

function isListUpTo(value: unknown, max: number): value is unknown[] {
  return Array.isArray(value) && value.length <= max;
}

/** What others call the same field. */
const aliases: Readonly<Record<string, string>> = {
  retries: 'retry',
  maxretries: 'retry',
  target: 'to',
  provider: 'to',
  conditions: 'when',
  condition: 'when',
  breaker: 'circuit_breaker',
  delay: 'base_ms',
};

/** The field that was probably meant. Underscores and hyphens are not compared. */
function nearestName(name: string, names: readonly string[]): string | undefined {
  const bare = name.toLowerCase().replaceAll(/[_-]/g, '');
  const alias = Object.hasOwn(aliases, bare) ? aliases[bare] : undefined;
  if (alias !== undefined && names.includes(alias)) return alias;
  if (name.length > MAX_TEXT) return undefined;
  const bareNames = names.map((each) => each.replaceAll('_', ''));
  // The unit is what people forget most.
  const found = bareNames.includes(`${bare}ms`) ? `${bare}ms` : nearest(bare, bareNames);
  return found === undefined ? undefined : names[bareNames.indexOf(found)];
}

function cut(name: string): string {
  return name.length > 60 ? `${name.slice(0, 57)}...` : name;
}
