/** One place that is never empty for long: who is killed or stopped there is replaced at once. */
import type { Instance } from './instance.ts';
import type { Journal } from './journal.ts';
import type { Stage } from './stage.ts';

export class Relay {
  readonly #stage: Stage;
  readonly #start: () => Promise<Instance>;
  service: Instance;

  constructor(stage: Stage, service: Instance, start = () => stage.start()) {
    this.#stage = stage;
    this.#start = start;
    this.service = service;
  }

  /** Killed at once, in the midst of its work. */
  async replace(journal: Journal): Promise<void> {
    await journal.trouble('service killed', async () => {
      await this.#stage.kill(this.service);
      this.service = await this.#start();
    });
  }

  /** Stopped in order. Answers its exit code when the next one is ready. */
  async upgrade(journal: Journal): Promise<number | NodeJS.Signals> {
    let code: number | NodeJS.Signals = -1;
    await journal.trouble('service stopped', async () => {
      code = await this.#stage.stop(this.service);
      this.service = await this.#start();
      await this.service.ready();
    });
    return code;
  }
}
