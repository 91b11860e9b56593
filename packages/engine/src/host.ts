import { inspect } from 'node:util';
import type { Clock, Random } from 'redrive';
import { systemClock } from 'redrive/internal';

/** What the engine takes from the machine it runs on. A test or a simulation hands in its own. */
export interface Host {
  clock: Clock;
  random: Random;
  /** Runs soon, after what is ready now: so that calls made together are written together. */
  defer: (callback: () => void) => void;
  log: Log;
}

/** A logger in the manner of pino: fields first, then the sentence. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The machine as it is, but for what is given. */
export function hostOf({ clock, random, defer, log }: Partial<Host>): Host {
  return {
    clock: clock ?? systemClock,
    random: random ?? Math.random,
    defer: defer ?? ((callback) => void setImmediate(callback)),
    log: log ? safeLog(log) : quietLog,
  };
}

/** A logger that fails, at once or later, must not end the work. */
function safeLog(log: Log): Log {
  const to = (level: keyof Log) => (fields: object, message: string) => {
    try {
      guard(log[level](fields, message));
    } catch (error) {
      console.error(sentence({ err: error }, `the logger failed at: ${message}`));
    }
  };
  return { debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') };
}

/** What somebody's callback returned may be a promise that fails. */
export function guard(result: unknown): void {
  if (result instanceof Promise) {
    result.catch((error: unknown) => console.error(sentence({ err: error }, 'a callback failed')));
  }
}

/** Says only what somebody should look at. */
const quietLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: (fields, message) => console.warn(sentence(fields, message)),
  error: (fields, message) => console.error(sentence(fields, message)),
};

/** One line: an outage would fill the screen with stacks. */
function sentence({ err, ...fields }: { err?: unknown }, message: string): string {
  const why = err === undefined ? '' : `: ${err instanceof Error ? err.message : inspect(err)}`;
  const rest = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : '';
  return `redrive: ${message}${why}${rest}`;
}
