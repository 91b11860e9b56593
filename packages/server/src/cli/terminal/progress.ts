/** What is drawn again and again in one place while a person looks, and what ends the looking. */
import { setTimeout as timer } from 'node:timers/promises';
import type { Io } from '../command.ts';
import { bar, count, type Terminal } from './terminal.ts';

const HIDE = '\u001B[?25l';
const SHOW = '\u001B[?25h';
const REST_OF_LINE = '\u001B[K';
const REST_OF_SCREEN = '\u001B[J';

/** Some lines of the terminal. Only where a person looks: what is written between must be cleared for first. */
export class LiveArea {
  readonly #out: Io['out'];
  readonly #rows: number;
  #drawn = 0;
  #began = false;

  /** `rows`: of the terminal. More lines than that could not be drawn over. */
  constructor(out: Io['out'], rows = Infinity) {
    this.#out = out;
    this.#rows = rows;
  }

  draw(lines: readonly string[]): void {
    const shown = lines.slice(0, Math.max(1, this.#rows - 1));
    const text = shown.map((line) => `${line}${REST_OF_LINE}\n`).join('');
    this.#out(`${this.#began ? '' : HIDE}${this.#back()}${text}${REST_OF_SCREEN}`);
    this.#began = true;
    this.#drawn = shown.length;
  }

  /** Takes the lines away again. */
  clear(): void {
    if (this.#drawn > 0) this.#out(`${this.#back()}${REST_OF_SCREEN}`);
    this.#drawn = 0;
  }

  /** Leaves the lines there, and the cursor below them. */
  end(): void {
    if (this.#began) this.#out(SHOW);
    this.#began = false;
    this.#drawn = 0;
  }

  #back(): string {
    return this.#drawn > 0 ? `\u001B[${this.#drawn}A\r` : '';
  }
}

/** `██████····  61 %  612 of 1,000`: as much of it as fits. */
export function progressLine(done: number, total: number, { width, paint }: Terminal): string {
  const share = total > 0 ? Math.min(1, done / total) : 0;
  const label = `${String(Math.floor(share * 100)).padStart(3)} %  ${count(done)} of ${count(total)}`;
  const room = Math.max(10, Math.min(40, width - label.length - 2));
  const filled = bar(share, room);
  return `${paint('green', filled)}${paint('dim', '·'.repeat(room - filled.length))}  ${label}`;
}

/** Aborted at the first Ctrl-C, so that what was begun is ended in order. A second one ends the process as usual. */
export function untilInterrupted(from: NodeJS.EventEmitter = process): Interrupt {
  const controller = new AbortController();
  const interrupt = (): void => {
    from.removeListener('SIGINT', interrupt);
    from.removeListener('SIGTERM', interrupt);
    controller.abort();
  };
  from.on('SIGINT', interrupt);
  from.on('SIGTERM', interrupt);
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      from.removeListener('SIGINT', interrupt);
      from.removeListener('SIGTERM', interrupt);
    },
  };
}

interface Interrupt extends Disposable {
  readonly signal: AbortSignal;
}

/** Waits, or until it is interrupted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await timer(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
