/** Ends requests that take too long. One timer for all of them: one of its own would cost each request more than its work. */
import type { FastifyReply } from 'fastify';
import { Problem } from '../problem.ts';

export class Deadlines {
  /** Those that are under way, oldest first, and until when they may be. */
  readonly #underway = new Map<FastifyReply, number>();
  readonly #limitMs: number;
  #isWatching = false;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  begin(reply: FastifyReply): void {
    this.#underway.set(reply, performance.now() + this.#limitMs);
    if (!this.#isWatching) this.#lookIn(this.#limitMs);
  }

  end(reply: FastifyReply): void {
    this.#underway.delete(reply);
  }

  #lookIn(ms: number): void {
    this.#isWatching = true;
    // No reason for the process to stay: what is under way is one.
    setTimeout(() => this.#look(), ms).unref();
  }

  #look(): void {
    this.#isWatching = false;
    const nowMs = performance.now();
    for (const [reply, untilMs] of this.#underway) {
      if (untilMs > nowMs) {
        this.#lookIn(Math.ceil(untilMs - nowMs));
        return;
      }
      this.#underway.delete(reply);
      if (!reply.sent) void reply.send(tooSlow());
    }
  }
}

function tooSlow(): Problem {
  return new Problem(
    'TOO_SLOW',
    'It took too long, and may still be done. Ask again; with the same message_id it is safe.',
  );
}
