/** Plays one call with the real `retry`, and prints what happens as it happens. */
import { type Clock, explain, retry, type RetryEvent } from 'redrive';
import { seededRandom } from 'redrive/testing';
import { bar, duration, type Terminal, wrap } from '../../cli/terminal/terminal.ts';
import type { Story } from './stories.ts';

const INDENT = ' '.repeat(9);
const FRAME_MS = 40;
/** A wait that fills the line. */
const LONGEST_MS = 1600;

export async function play(
  story: Story,
  terminal: Terminal,
  clock: Clock,
  write: (text: string) => void,
  signal?: AbortSignal,
): Promise<void> {
  const { paint } = terminal;
  const startedAt = clock.monotonic();
  let attempts = 0;
  const wait = new WaitBar(terminal, clock, write);

  function say(text: string): void {
    const seconds = `${((clock.monotonic() - startedAt) / 1000).toFixed(2)} s`;
    write(
      `${wrap(`${paint('dim', seconds.padStart(7))}  ${text}`, terminal.width, INDENT + '  ').join('\n')}\n`,
    );
  }
  function show(event: RetryEvent): void {
    switch (event.type) {
      case 'attempt':
        wait.end();
        return say(`${paint('cyan', '→')} attempt ${event.attempt}`);
      case 'wait':
        say(`${paint('yellow', '✗')} ${explain(event.decision)}`);
        return wait.begin(event.delayMs);
      case 'success':
        attempts = event.attempts;
        return;
      case 'giveUp':
        return say(`${paint('red', '■')} ${explain(event.decision)}`);
    }
  }

  write(`\n${paint('bold', story.title)}\n\n`);
  for (const line of story.code) {
    for (const part of wrap(`  ${line}`, terminal.width, '      '))
      write(`${paint('dim', part)}\n`);
  }
  write('\n');
  try {
    const result = await retry((attempt) => story.call(attempt, clock), story.policy, {
      clock,
      // The same waits each time, so that what the docs show is what you see.
      random: seededRandom(4),
      signal,
      on: show,
    });
    say(`${paint('green', '✔')} ${result}, after ${attempts} attempts`);
  } catch {
    // It was told by its event, or whoever watched has seen enough.
    wait.end();
  }
}

/** A bar as long as the wait, that fills while it passes. Where nothing can be redrawn it is drawn full. */
class WaitBar {
  readonly #terminal: Terminal;
  readonly #clock: Clock;
  readonly #write: (text: string) => void;
  #delayMs = 0;
  #beganAt = 0;
  #timer: unknown;

  constructor(terminal: Terminal, clock: Clock, write: (text: string) => void) {
    this.#terminal = terminal;
    this.#clock = clock;
    this.#write = write;
  }

  begin(delayMs: number): void {
    this.#delayMs = delayMs;
    this.#beganAt = this.#clock.monotonic();
    if (this.#terminal.live) this.#tick();
    else this.#write(`${this.#line(1)}\n`);
  }

  end(): void {
    if (this.#timer === undefined) return;
    this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#write(`\r${this.#line(1)}\n`);
  }

  #tick(): void {
    const share = (this.#clock.monotonic() - this.#beganAt) / this.#delayMs;
    this.#write(`\r${this.#line(share)}`);
    this.#timer = this.#clock.setTimer(() => this.#tick(), FRAME_MS);
  }

  #line(share: number): string {
    const { width, paint } = this.#terminal;
    const label = duration(this.#delayMs);
    const room = width - INDENT.length - label.length - 5;
    const length = Math.max(1, Math.round(Math.min(1, this.#delayMs / LONGEST_MS) * room));
    const filled = bar(share, length);
    const rest = '·'.repeat(Math.max(0, length - filled.length));
    return `${INDENT}  ${paint('yellow', filled)}${paint('dim', rest)} ${paint('dim', label)}`;
  }
}
