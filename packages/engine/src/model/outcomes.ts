import { ConfigError, type Duration } from 'redrive';
import { durationMs } from 'redrive/internal';

/** What a handler may return to say what should happen next. */
export type Wish =
  | { readonly [wish]: true; type: 'retryIn'; delay: Duration }
  | { readonly [wish]: true; type: 'snooze'; delay: Duration }
  | { readonly [wish]: true; type: 'giveUp'; reason: string };

/** By a shared symbol, so that another copy of this library is understood too. */
const wish: unique symbol = Symbol.for('redrive.wish') as never;

/** This execution failed: again after exactly this time, if an attempt is left. */
export function retryIn(delay: Duration): Wish {
  return { [wish]: true, type: 'retryIn', delay: checked(delay) };
}

/** Not now: again after this time, without consuming an attempt. At most `maxUncounted` times in a row. */
export function snooze(delay: Duration): Wish {
  return { [wish]: true, type: 'snooze', delay: checked(delay) };
}

/** No use to try again: to the inbox, with this reason. */
export function giveUp(reason: string): Wish {
  return { [wish]: true, type: 'giveUp', reason };
}

export function isWish(value: unknown): value is Wish {
  return typeof value === 'object' && value !== null && wish in value;
}

function checked(delay: Duration): Duration {
  if (Number.isNaN(durationMs(delay))) {
    throw new ConfigError(
      'INVALID_DURATION',
      `${String(delay)} is not a duration. Write ms as a number, or a text such as '5m'.`,
    );
  }
  return delay;
}
