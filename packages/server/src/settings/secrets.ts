import type { Secrets } from '@redrive/engine/http';
import type { Fault } from 'redrive';

/** Credentials by name, with the texts that stand in the environment. Their form is the delivery's to check. */
export function readSecrets(
  data: unknown,
  env: Readonly<Record<string, string>>,
  faults: Fault[],
): Secrets {
  if (data === undefined) return {};
  if (typeof data === 'function') return data as Secrets;
  if (!isObject(data)) {
    const message = 'is not an object of secrets by name, nor a function that finds them.';
    faults.push({ path: 'secrets', code: 'INVALID_VALUE', message });
    return {};
  }
  const before = faults.length;
  const secrets = filled(data, 'secrets', env, faults) as Secrets;
  return faults.length > before ? {} : secrets;
}

/** The same with every `{ env: 'NAME' }` replaced by what that variable says. */
function filled(
  value: unknown,
  path: string,
  env: Readonly<Record<string, string>>,
  faults: Fault[],
): unknown {
  if (!isObject(value)) return value;
  // A set of secrets may itself be called `env`: only a text names a variable.
  if (Object.keys(value).length === 1 && typeof value['env'] === 'string') {
    const text = env[value['env']];
    if (text !== undefined) return text;
    const message = `the variable ${value['env']} is not set. Set it in the environment or in .env.`;
    faults.push({ path, code: 'INVALID_VALUE', message });
    return '';
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, filled(one, `${path}.${key}`, env, faults)]),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return Object.prototype.toString.call(value) === '[object Object]';
}
