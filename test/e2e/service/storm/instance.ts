/** One process of the service: asked by HTTP, and ended in whatever way. */
import { type RedriveProcess, serveAlone, type TemporaryFolder } from '../redrive-process.ts';

export type Env = Readonly<Record<string, string>>;

export class Instance implements AsyncDisposable {
  readonly url: string;
  readonly #process: RedriveProcess;
  readonly #folder: TemporaryFolder;

  private constructor(process: RedriveProcess, folder: TemporaryFolder, url: string) {
    this.#process = process;
    this.#folder = folder;
    this.url = url;
  }

  /** By its environment only. It listens then, and may not be ready yet. */
  static async start(env: Env): Promise<Instance> {
    const { child, folder, url } = await serveAlone(env);
    return new Instance(child, folder, url);
  }

  /** What it has logged, line by line. */
  get lines(): readonly string[] {
    return this.#process.lines;
  }

  /** It works, by its own word. */
  async ready(): Promise<void> {
    await this.#process.ready();
  }

  async get<T>(path: string): Promise<{ status: number; body: T }> {
    const response = await fetch(this.url + path);
    return { status: response.status, body: (await response.json()) as T };
  }

  async metricsPage(): Promise<string> {
    return (await fetch(`${this.url}/metrics`)).text();
  }

  /** As a container is stopped. Answers its exit code. */
  stop(): Promise<number | NodeJS.Signals> {
    return this.#process.stop();
  }

  /** At once, in the midst of whatever it does. */
  async kill(): Promise<void> {
    this.#process.signal('SIGKILL');
    await this.#process.exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.#folder[Symbol.dispose]();
  }
}
