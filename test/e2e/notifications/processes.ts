/** Processes of one program that are killed in the middle of whatever they do. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export class Processes implements AsyncDisposable {
  /** By name: what each said when it was ready. */
  readonly live = new Map<string, string>();
  readonly dead = new Set<string>();
  readonly #program: string;
  readonly #argumentOf: (name: string) => object;
  readonly #children = new Map<string, ChildProcess>();
  #count = 0;

  constructor(program: string, argumentOf: (name: string) => object) {
    this.#program = join(import.meta.dirname, program);
    this.#argumentOf = argumentOf;
  }

  async start(): Promise<string> {
    const name = `w${this.#count++}`;
    const child = spawn(process.execPath, [this.#program, JSON.stringify(this.#argumentOf(name))], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#children.set(name, child);
    const [said] = (await once(child.stdout, 'data')) as [Buffer];
    this.live.set(name, said.toString().trim());
    return name;
  }

  /** The oldest one. Answers its name when it is gone. */
  async kill(): Promise<string> {
    const [name, child] = [...this.#children][0]!;
    this.live.delete(name);
    this.#children.delete(name);
    this.dead.add(name);
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    return name;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    while (this.#children.size > 0) await this.kill();
  }
}
