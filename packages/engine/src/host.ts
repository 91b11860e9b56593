import type { Clock, Random } from 'redrive';

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
