import { ConfigError } from '../errors.ts';

export function notAFunction(fn: unknown): ConfigError {
  const got = fn === null ? 'null' : typeof fn;
  return new ConfigError(
    'NOT_A_FUNCTION',
    `What is to be retried must be a function, called anew for each attempt; got ${got}. Write retry(() => work()), not retry(work()).`,
  );
}
