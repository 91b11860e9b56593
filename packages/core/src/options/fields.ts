import { durationMs } from '../policy/duration.ts';
import type { ErrorCode, Fault } from '../errors.ts';
import { explainFault, type Name, nearest, type Wanted } from './faults.ts';

/** What one field of an options object takes. */
export type Field =
  | { kind: 'integer' | 'number'; min: number; max: number; default?: number }
  | { kind: 'duration'; min: number; default?: number }
  | { kind: 'durations'; max: number }
  | { kind: 'boolean'; default: boolean }
  | { kind: 'choice'; of: readonly string[]; default: string }
  | { kind: 'names'; known: readonly string[]; default: readonly string[] }
  | { kind: 'objects'; max: number };

export type Fields = Readonly<Record<string, Field>>;
export type Values = Record<string, unknown>;

/** The values that were written and make sense, durations in ms. Each of the others becomes a fault. */
export function readFields(
  data: unknown,
  fields: Fields,
  names: readonly string[],
  path: string,
  faults: Fault[],
): Values {
  const values: Values = {};
  if (!isObject(data)) {
    fault(faults, path, 'INVALID_VALUE', { kind: 'object', isPolicy: isPolicy(fields) }, data);
    return values;
  }
  for (const name of Object.keys(data)) {
    // A file may name its schema, so that an editor can help.
    if (name === '$schema' && path === '') continue;
    const value = data[name];
    const at = joinPath(path, name);
    const field = names.includes(name) ? fields[name] : undefined;
    if (field === undefined) {
      const kind = Object.hasOwn(fields, name) ? 'fixed' : 'known';
      const near = nearest(name, names);
      fault(faults, at, 'UNKNOWN_FIELD', { kind, name, near, isPolicy: isPolicy(fields) }, value);
    } else if (value !== undefined) {
      const read = readValue(field, value, at, faults);
      if (read !== undefined) values[name] = read;
    }
  }
  return values;
}

/** Only a policy goes with a runtime. */
function isPolicy(fields: Fields): boolean {
  return Object.hasOwn(fields, 'maxUncounted');
}

export function defaultOf(field: Field): unknown {
  return 'default' in field ? field.default : undefined;
}

export function fault(
  faults: Fault[],
  path: string,
  code: ErrorCode,
  wanted: Wanted,
  value: unknown,
): void {
  faults.push({ path, code, message: explainFault(wanted, value) });
}

export function joinPath(path: string, name: string): string {
  return path ? `${path}.${name}` : name;
}

export function readValue(
  field: Field | Name,
  value: unknown,
  path: string,
  faults: Fault[],
): unknown {
  switch (field.kind) {
    case 'integer':
    case 'number':
      if (isNumber(value, field.min, field.max) && (field.kind === 'number' || value % 1 === 0)) {
        return value + 0;
      }
      break;
    case 'duration': {
      const ms = durationMs(value);
      if (ms >= field.min) return ms;
      fault(faults, path, 'INVALID_DURATION', field, value);
      return undefined;
    }
    case 'boolean':
      if (typeof value === 'boolean') return value;
      break;
    case 'choice':
      if (field.of.includes(value as string)) return value;
      break;
    case 'durations':
      if (isList(value, 1, field.max)) {
        return readList({ kind: 'duration', min: 0 }, value, path, faults);
      }
      break;
    case 'name':
      if (isName(value, field.known)) return value;
      break;
    case 'names':
      if (isList(value, 0, 100)) {
        const names = readList({ kind: 'name', known: field.known }, value, path, faults);
        return names && [...new Set(names)];
      }
      break;
    case 'objects':
      if (isObject(value) && Object.keys(value).length <= field.max) return value;
      break;
  }
  fault(faults, path, 'INVALID_VALUE', field, value);
  return undefined;
}

/** The entries, or a fault for each that makes no sense. */
function readList(
  entry: Field | Name,
  list: readonly unknown[],
  path: string,
  faults: Fault[],
): unknown[] | undefined {
  const before = faults.length;
  // `map` would leave out the holes of a list such as [1, , 3].
  const values = Array.from(list, (item, i) => readValue(entry, item, `${path}.${i}`, faults));
  return faults.length > before ? undefined : values;
}

/** By its tag, so that a promise, a map or a date is not taken for an object without fields. */
export function isObject(value: unknown): value is Values {
  return Object.prototype.toString.call(value) === '[object Object]';
}

function isNumber(value: unknown, min: number, max: number): value is number {
  return typeof value === 'number' && value >= min && value <= max;
}

function isList(value: unknown, min: number, max: number): value is unknown[] {
  return Array.isArray(value) && value.length >= min && value.length <= max;
}

/** Codes and error names are the user's own: only a slip in one of the known words can be noticed. */
export function isName(name: unknown, known: readonly string[]): name is string {
  if (typeof name !== 'string' || name === '' || name.length > 200) return false;
  const lower = name.toLowerCase();
  // In capitals UNKNOWN is a gRPC code; the other words are ours in any case.
  if (name !== lower) return lower === 'unknown' || !known.includes(lower);
  const near = nearest(name, known);
  return near === undefined || near === name;
}
