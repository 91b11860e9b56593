import type { LogOutput } from './log.ts';

/** What `process.stdout` is, as far as the log needs it. Files and pipes answer by the callback. */
interface LogStream extends LogOutput {
  write(text: string, done?: (error?: Error | null) => void): unknown;
  /** Bytes that wait for a reader. */
  readonly writableLength?: number;
  on?(event: 'error', listener: (error: Error) => void): unknown;
}

/** What may wait for a reader that does not read. Lines beyond it are dropped and counted. */
const MAX_WAITING_BYTES = 1024 * 1024;

/** Streams whose errors are heard already: several services may share one. */
const heard = new WeakSet<LogStream>();

/**
 * Writes the lines of the log, and never stops the service: a line that cannot be written (the reader of a pipe is gone,
 * the disk is full) or that nobody reads is dropped and counted. When writing works again, `onBack` hears how many.
 */
export class LossyOutput implements LogOutput {
  readonly #to: LogStream;
  /** Lines that were lost, since the start. */
  lost = 0;
  /** Writes one line to the log that tells how many were lost. */
  onBack: (lines: number) => void = () => {};
  /** How many of the lost lines were told. */
  #told = 0;
  /** no: nothing to tell, or not yet. now: the next line tells. sent: that line is on its way. */
  #telling: 'no' | 'now' | 'sent' = 'no';

  constructor(to: LogStream) {
    this.#to = to;
    // An error that nobody hears would end the process. Each line hears of its own by its callback.
    if (!heard.has(to)) to.on?.('error', () => {});
    heard.add(to);
  }

  get isTTY(): boolean {
    return this.#to.isTTY === true;
  }

  write(line: string): void {
    const done = this.#telling === 'now' ? this.#tellingLine() : this.#written;
    const waiting = this.#to.writableLength ?? 0;
    if (waiting > 0 && waiting + line.length > MAX_WAITING_BYTES) {
      done(new Error('Nobody reads.'));
      return;
    }
    try {
      this.#to.write(line, done);
    } catch (error) {
      done(error as Error);
    }
  }

  /** One function for all lines: the log is written often. */
  readonly #written = (error?: Error | null): void => {
    if (error) this.lost += 1;
    else if (this.lost > this.#told && this.#telling === 'no') this.#tell();
  };

  #tell(): void {
    const { lost } = this;
    this.#telling = 'now';
    this.onBack(lost - this.#told);
    // The level of the log leaves it out.
    if (this.#telling === 'now') this.#tellingLine()();
  }

  /** Once it is written, everything up to now is told. If it is lost as well, the next line that is written tells. */
  #tellingLine(): (error?: Error | null) => void {
    const { lost } = this;
    this.#telling = 'sent';
    return (error) => {
      this.#telling = 'no';
      if (error) this.lost += 1;
      else this.#told = lost;
    };
  }
}
