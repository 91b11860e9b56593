import { inspect } from 'node:util';
import type { Clock, Random } from 'redrive';
import { systemClock } from 'redrive/internal';

/** What the engine takes from the machine it runs on. A test or a simulation hands in its own. */
export interface Host {
  clock: Clock;
  random: Random;
  /** Runs later in this turn, after what is ready now: so that calls made together are written together. */
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
    log: log ?? quietLog,
  };
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
