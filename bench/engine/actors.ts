import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Answer } from './actor.ts';
import type { PlayerName, Skills } from './players.ts';

/** A player as its case sees it: in another process, one order at a time. */
export class Actor<Name extends PlayerName = PlayerName> {
  readonly #name: Name;
  readonly #child: ChildProcess;

  constructor(name: Name) {
    this.#name = name;
    // As its users run it, but for `gc`, which is called between turns only.
    this.#child = fork(join(import.meta.dirname, 'actor.ts'), [name], {
      execArgv: ['--expose-gc'],
    });
  }

  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  async ask<Method extends keyof Skills<Name> & string>(
    method: Method,
    ...args: Skills<Name>[Method] extends (...args: infer Args) => unknown ? Args : never
  ): Promise<
    Skills<Name>[Method] extends (...args: never) => Promise<infer Result> ? Result : never
  > {
    const answer = await new Promise<Answer>((resolve) => {
      const hear = (said: Answer) => finish(said);
      const mourn = (code: number | null) => finish({ fault: `its process ended with ${code}` });
      const finish = (how: Answer) => {
        this.#child.off('message', hear);
        this.#child.off('exit', mourn);
        resolve(how);
      };
      this.#child.on('message', hear);
      this.#child.on('exit', mourn);
      this.#child.send({ method, args }, (error) => {
        if (error) finish({ fault: `its process has ended: ${error.message}` });
      });
    });
    if ('fault' in answer) throw new Error(`${this.#name}, asked to ${method}: ${answer.fault}`);
    return answer.result as never;
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill();
    await ended;
  }
}
