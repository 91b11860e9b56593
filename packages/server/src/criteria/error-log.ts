/** Errors of evaluations in the log: a channel per audience, a few lines a second, and how many were left out. */
import type { Logger } from 'pino';
import type { Clock, CriterionError, CriterionName } from 'redrive';
import { type Audience, audienceOf } from './audience.ts';

/** Lines per audience and window. A thousand failing entities must not fill a disk. */
const MAX_LINES = 10;
const WINDOW_MS = 1000;

/** Its answer is the default delay where it fails. Somebody has to hear of it all the same. */
export const FUNCTION = 'nextRetryTime';

export interface FailedEvaluation {
  readonly criterion: CriterionName | typeof FUNCTION;
  readonly error: CriterionError;
  readonly entityId: string | undefined;
  /** The entity's own count, as it came. */
  readonly attempt: unknown;
}

interface Channel {
  readonly log: Logger;
  lines: number;
  leftOut: number;
  windowAt: number;
}

export class ErrorLog {
  readonly #clock: Clock;
  readonly #channels: Readonly<Record<Audience, Channel>>;
  #timer: unknown;

  constructor({ log, clock }: { log: Logger; clock: Clock }) {
    this.#clock = clock;
    const channel = (audience: Audience): Channel => ({
      log: log.child({ audience }),
      lines: 0,
      leftOut: 0,
      windowAt: -Infinity,
    });
    this.#channels = { operations: channel('operations'), development: channel('development') };
  }

  add({ criterion, error, entityId, attempt }: FailedEvaluation): void {
    const channel = this.#channels[audienceOf(error.code)];
    const nowMs = this.#clock.monotonic();
    if (nowMs - channel.windowAt >= WINDOW_MS) {
      tellLeftOut(channel);
      channel.windowAt = nowMs;
      channel.lines = 0;
    }
    if (channel.lines >= MAX_LINES) {
      channel.leftOut += 1;
      this.#tellLater();
      return;
    }
    channel.lines += 1;
    const about = {
      criterion,
      code: error.code,
      entity_id: entityId,
      attempt: shownAttempt(attempt),
    };
    channel.log.warn(about, `an evaluation failed: ${error.message}`);
  }

  /** Logs how many lines were left out, and waits for no window. */
  stop(): void {
    this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
    for (const channel of Object.values(this.#channels)) tellLeftOut(channel);
  }

  #tellLater(): void {
    this.#timer ??= this.#clock.setTimer(() => this.stop(), WINDOW_MS, true);
  }
}

function tellLeftOut(channel: Channel): void {
  if (channel.leftOut === 0) return;
  channel.log.warn({ left_out: channel.leftOut }, 'more evaluations failed than are logged');
  channel.leftOut = 0;
}

/** The count is the only field of an entity that is logged. Anything but a number could be hostile text. */
function shownAttempt(attempt: unknown): number | null {
  return typeof attempt === 'number' && Number.isFinite(attempt) ? attempt : null;
}
