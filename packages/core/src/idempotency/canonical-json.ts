import { ConfigError } from '../errors.ts';
import { saidBy } from '../options/faults.ts';

/** Deeper nesting is surely a mistake, and would end in an overflow of the stack. */
const MAX_DEPTH = 256;
const MAX_SHOWN = 100;
const loneSurrogate = /\p{Surrogate}/u;

/**
 * The canonical JSON of a value (RFC 8785): members sorted by their UTF-16 units at every depth, no white space, numbers
 * as ECMAScript prints them. Members that are undefined are left out, and `toJSON` is used, as by `JSON.stringify`. What
 * JSON cannot carry is refused: two values that differ must not become the same text.
 */
export function canonicalJson(value: unknown, name = 'value'): string {
  try {
    return write(value, '', name, []);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    // A getter, a proxy or a toJSON of the caller's has thrown.
    throw refusal(name, `reading it failed (${saidBy(error)})`);
  }
}

function write(value: unknown, key: string, path: string, parents: readonly unknown[]): string {
  const data = replaced(value, key);
  switch (typeof data) {
    case 'string':
      if (loneSurrogate.test(data)) throw refusal(path, 'a text with half a surrogate pair');
      return JSON.stringify(data);
    case 'number':
      if (!Number.isFinite(data)) throw refusal(path, String(data));
      // Adding nothing makes a 0 of -0.
      return String(data + 0);
    case 'boolean':
      return String(data);
    case 'object':
      break;
    case 'bigint':
    case 'function':
    case 'symbol':
    case 'undefined':
      throw refusal(path, `a value of type ${typeof data}`);
  }
  if (data === null) return 'null';
  if (parents.includes(data)) throw refusal(path, 'an object that contains itself');
  if (parents.length >= MAX_DEPTH) throw refusal(path, `nesting over ${MAX_DEPTH}`);
  const inside = [...parents, data];
  if (Array.isArray(data)) {
    // `map` would skip the holes of a list such as [1, , 3].
    const items = Array.from(data as unknown[], (item, i) =>
      write(item, String(i), `${path}[${i}]`, inside),
    );
    return `[${items.join(',')}]`;
  }
  const tag = Object.prototype.toString.call(data).slice('[object '.length, -1);
  if (tag !== 'Object') throw refusal(path, `a ${tag}`);
  const members = Object.keys(data)
    .toSorted()
    .flatMap((member) => {
      const content = (data as Record<string, unknown>)[member];
      if (content === undefined) return [];
      const name = write(member, '', `the name of a member of ${path}`, []);
      return [`${name}:${write(content, member, `${path}.${member}`, inside)}`];
    });
  return `{${members.join(',')}}`;
}

/** What stands for a value in JSON: a `Date` is a text. */
function replaced(value: unknown, key: string): unknown {
  const { toJSON } = (Object(value) === value ? value : {}) as { toJSON?: unknown };
  return typeof toJSON === 'function' ? (toJSON.call(value, key) as unknown) : value;
}

function refusal(path: string, found: string): ConfigError {
  return new ConfigError(
    'NOT_JSON',
    `JSON cannot carry ${path.slice(0, MAX_SHOWN)}: ${found}. Give null, booleans, finite numbers, well-formed texts, lists and plain objects of these.`,
  );
}
