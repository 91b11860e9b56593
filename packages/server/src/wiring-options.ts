import type { Clock } from 'redrive';
import type { LogOutput } from './observe/log/log.ts';

/** Apart from the wiring, whose types need those of every client library. */
export interface WiringOptions {
  clock?: Clock;
  logTo?: LogOutput;
}
