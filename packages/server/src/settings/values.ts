/** One value by its kind: what was written, checked; or the sentence that says what is wrong. */
import { nearest } from 'redrive/internal';
import { hidden, hiddenUrl, withFirstHost } from './hide.ts';
import type { Role, Token } from './settings.ts';
import type { Kind, Variable } from './variables.ts';

/** `shown` is the value as everybody may see it. */
export type Value = { ok: true; value: unknown; shown: string } | { ok: false; message: string };

const roles: readonly Role[] = ['gateway', 'reader', 'operator', 'admin'];
const MAX_LIST = 1000;
const MAX_SHOWN = 60;

/** Reads a value of the environment, which is always a text. */
export function readText(variable: Variable, text: string): Value {
  switch (variable.kind) {
    case 'integer':
      // Not `Number` alone, which reads '', ' 1' and '0x10' too.
      return readValue(variable, /^[+-]?\d{1,15}(\.\d+)?$/.test(text) ? Number(text) : text);
    case 'number':
      return readValue(variable, /^[+-]?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text);
    case 'boolean':
      return readValue(variable, { true: true, 1: true, false: false, 0: false }[text] ?? text);
    case 'list':
    case 'urls':
    case 'tokens':
      return readValue(variable, split(text));
    case 'text':
    case 'choice':
    case 'url':
    case 'secret':
      return readValue(variable, text);
  }
}

/** Reads a value of a file, which has its own type. */
export function readValue(variable: Variable, value: unknown): Value {
  switch (variable.kind) {
    case 'text':
      return isText(value, variable) ? good(value) : bad(variable, quoted(value));
    case 'integer': {
      const { min, max } = variable;
      const isRight = Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
      return isRight ? good(value) : bad(variable, quoted(value));
    }
    case 'number':
      return isNumber(value, variable) ? good(value) : bad(variable, quoted(value));
    case 'boolean':
      return typeof value === 'boolean' ? good(value) : bad(variable, quoted(value));
    case 'choice': {
      if (variable.of.includes(value as string)) return good(value);
      const near = nearest(value, variable.of);
      return bad(variable, quoted(value), near && `Did you mean '${near}'?`);
    }
    case 'list':
      return isList(value)
        ? { ok: true, value, shown: value.join(',') }
        : bad(variable, quoted(value));
    case 'url':
      return readUrl(variable, value);
    case 'urls':
      return readUrls(variable, value);
    case 'secret':
      return isText(value, variable)
        ? { ok: true, value, shown: '***' }
        : bad(variable, hidden(value));
    case 'tokens':
      return readTokens(variable, value);
  }
}

/** What it takes, in words: for faults and for the reference. */
export function takes(kind: Kind): string {
  switch (kind.kind) {
    case 'text':
      return kind.takes ?? `a text of 1 to ${kind.maxBytes} bytes`;
    case 'integer':
      return `a whole number from ${kind.min} to ${kind.max}`;
    case 'number': {
      const { above, min = 0, max } = kind;
      return above === undefined
        ? `a number from ${min} to ${max}`
        : `a number above ${above} and up to ${max}`;
    }
    case 'boolean':
      return 'true or false';
    case 'choice':
      return `one of ${kind.of.join(', ')}`;
    case 'list':
      return 'a list, separated by commas';
    case 'urls':
      return `one or several URLs with ${kind.protocols.map((one) => `${one}//`).join(' or ')}, separated by commas`;
    case 'url':
      return `a URL with ${kind.protocols.map((one) => `${one}//`).join(' or ')}`;
    case 'secret':
      return `a text of 1 to ${kind.maxBytes} bytes without control characters`;
    case 'tokens':
      return 'a list of name:role:sha256, separated by commas';
  }
}

function good(value: unknown): Value {
  return { ok: true, value, shown: String(value) };
}

function bad(variable: Variable, found: string, hint?: string): Value {
  const example = variable.example === undefined ? '' : `, such as ${variable.example}`;
  const more = hint === undefined ? '' : ` ${hint}`;
  return { ok: false, message: `${found} is not ${takes(variable)}${example}.${more}` };
}

function readUrls(variable: Variable & { kind: 'urls' }, value: unknown): Value {
  const urls = typeof value === 'string' ? split(value) : value;
  if (!isList(urls) || urls.length === 0) return bad(variable, hidden(value));
  const read = urls.map((url) => readUrl(variable, url));
  const wrong = read.find(({ ok }) => !ok);
  if (wrong) return wrong;
  const shown = read.map((one) => (one.ok ? one.shown : '')).join(',');
  return { ok: true, value: urls, shown };
}

function readUrl(variable: Variable & { kind: 'url' | 'urls' }, value: unknown): Value {
  if (typeof value !== 'string') return bad(variable, quoted(value));
  const shown = hiddenUrl(value, 'hide' in variable ? variable.hide : undefined);
  const url = URL.parse(withFirstHost(value).first);
  // Without the slashes all of it would be a path.
  if (!url || !/^[a-z][a-z+]*:\/\//i.test(value)) return bad(variable, `'${shown}'`);
  if (!variable.protocols.includes(url.protocol)) {
    const near = nearest(
      url.protocol.slice(0, -1),
      variable.protocols.map((one) => one.slice(0, -1)),
    );
    return bad(variable, `'${shown}'`, near && `Did you mean ${near}://?`);
  }
  return { ok: true, value, shown };
}

/** The third part is never shown: somebody may have put the token there instead of its hash. */
function readTokens(variable: Variable & { kind: 'tokens' }, value: unknown): Value {
  if (!isList(value)) return bad(variable, hidden(value));
  const tokens: Token[] = [];
  const faults: string[] = [];
  for (const [i, entry] of value.entries()) {
    const [name = '', role = '', sha256 = '', ...more] = entry.split(':');
    const at = `entry ${i + 1}`;
    if (sha256 === '' || more.length > 0) {
      faults.push(`${at} does not have the form name:role:sha256`);
      continue;
    }
    if (!/^[\w.@-]{1,64}$/.test(name)) {
      faults.push(`${at}: a name has letters, digits, dots and dashes, at most 64`);
    } else if (tokens.some((token) => token.name === name)) {
      faults.push(`${at}: there is a token '${name}' already`);
    }
    const known = roles.find((one) => one === role);
    if (known === undefined) faults.push(`${at}: the role is not one of ${roles.join(', ')}`);
    if (!/^[0-9a-f]{64}$/i.test(sha256)) {
      faults.push(`${at}: the third part is not a SHA-256 as 64 hexadecimal digits`);
    }
    if (known !== undefined) tokens.push({ name, role: known, sha256: sha256.toLowerCase() });
  }
  if (faults.length > 0) {
    return { ok: false, message: `${faults.join('; ')}. \`redrive token <name>\` makes an entry.` };
  }
  const shown = tokens.map(({ name, role }) => `${name}:${role}:***`).join(',');
  return { ok: true, value: tokens, shown };
}

function isNumber(
  value: unknown,
  { above = -Infinity, min = -Infinity, max }: Variable & { kind: 'number' },
): boolean {
  return typeof value === 'number' && value > above && value >= min && value <= max;
}

function isText(
  value: unknown,
  { maxBytes, pattern }: { maxBytes: number; pattern?: RegExp },
): value is string {
  if (typeof value !== 'string' || value === '' || Buffer.byteLength(value) > maxBytes)
    return false;
  // Control characters would break log lines, headers and names.
  // eslint-disable-next-line no-control-regex
  return !/[\u0000-\u001F\u007F]/.test(value) && (pattern === undefined || pattern.test(value));
}

function isList(value: unknown): value is string[] {
  return (
    Array.isArray(value) &&
    value.length <= MAX_LIST &&
    value.every((one) => typeof one === 'string' && one !== '')
  );
}

function split(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function quoted(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string') return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
  const text = value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN - 3)}...` : value;
  return `'${text}'`;
}
