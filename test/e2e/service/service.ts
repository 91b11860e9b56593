/** A running service, asked by HTTP alone. */
import {
  eventually,
  type RedriveProcess,
  serveAlone,
  type TemporaryFolder,
} from './redrive-process.ts';

export type Env = Readonly<Record<string, string>>;

/** What the API answers, as far as tests look at it. */
export interface Answer<T = unknown> {
  status: number;
  body: T;
}

export interface Readiness {
  ready: boolean;
  checks: { name: string; ok: boolean; detail?: string }[];
}

export interface TaskView {
  message_id: string;
  queue: string;
  status: string;
  in_delivery: boolean;
  retry_count: number;
  max_retries: number;
  due_at: string;
  created_at: string;
  error?: { class: string; code?: string; message?: string };
  attempts: { attempt: number; error: { message?: string } }[];
}

export interface ItemView {
  id: number;
  message_id: string;
  reason: string;
  state: string;
  queue?: string;
  lane: string;
  occurrences: number;
  retry_count: number;
  max_retries: number;
  error: { class: string; code?: string; message?: string };
  payload?: unknown;
  payload_base64?: string;
  headers?: Record<string, string>;
}

export class Service implements AsyncDisposable {
  readonly url: string;
  readonly #process: RedriveProcess;
  readonly #folder: TemporaryFolder;

  private constructor(process: RedriveProcess, folder: TemporaryFolder, url: string) {
    this.#process = process;
    this.#folder = folder;
    this.url = url;
  }

  /** Listening, and perhaps never ready. */
  static async listening(env: Env, ...args: string[]): Promise<Service> {
    const { child, folder, url } = await serveAlone(env, args);
    return new Service(child, folder, url);
  }

  static async start(env: Env, ...args: string[]): Promise<Service> {
    const service = await Service.listening(env, ...args);
    try {
      await eventually(
        () => service.readiness(),
        ({ ready }) => ready,
      );
      return service;
    } catch (error) {
      await service[Symbol.asyncDispose]();
      throw error;
    }
  }

  async ask<T>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    const response = await fetch(this.url + path, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    return { status: response.status, body: (await response.json()) as T };
  }

  async readiness(): Promise<Readiness> {
    return (await this.ask<Readiness>('GET', '/health/ready')).body;
  }

  /** The one task of this id, in this queue where there are several; undefined: there is none. */
  async task(id: string, queue?: string): Promise<TaskView | undefined> {
    const query = queue === undefined ? '' : `?queue=${encodeURIComponent(queue)}`;
    const { status, body } = await this.ask<TaskView>('GET', `/api/v1/retries/${id}${query}`);
    return status === 200 ? body : undefined;
  }

  /** Looks until the task is as it is waited for. */
  async taskThat(id: string, isSo: (task: TaskView) => boolean, queue?: string): Promise<TaskView> {
    const found = await eventually(
      () => this.task(id, queue),
      (task) => task !== undefined && isSo(task),
    );
    return found!;
  }

  async items(query: Readonly<Record<string, string>>): Promise<ItemView[]> {
    const path = `/api/v1/review?${new URLSearchParams({ limit: '100', ...query }).toString()}`;
    return (await this.ask<{ items: ItemView[] }>('GET', path)).body.items;
  }

  /** The open item of a message, as soon as there is one, with its payload. */
  async item(id: string, isSo: (item: ItemView) => boolean = () => true): Promise<ItemView> {
    const [item] = await eventually(
      () => this.items({ message_id: id }),
      ([first]) => first !== undefined && isSo(first),
    );
    return (await this.ask<ItemView>('GET', `/api/v1/review/${item!.id}`)).body;
  }

  async metricsPage(): Promise<string> {
    return (await fetch(`${this.url}/metrics`)).text();
  }

  /** The sum of the series that have these labels; 0 where there are none. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    let sum = 0;
    for (const line of (await this.metricsPage()).split('\n')) {
      const [, found, text = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      const has = ([label, wanted]: [string, string]) => text.includes(`${label}="${wanted}"`);
      if (found === name && Object.entries(labels).every(has)) sum += Number(value);
    }
    return sum;
  }

  /** When it ends by itself: its exit code, and what it had to say. */
  async ended(): Promise<{ code: number | NodeJS.Signals; said: string }> {
    const code = await this.#process.exit;
    return { code, said: this.#process.err };
  }

  /** As a container is stopped. Answers its exit code. */
  stop(): Promise<number | NodeJS.Signals> {
    return this.#process.stop();
  }

  /** At once, in the midst of whatever it does. */
  async kill(): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.#folder[Symbol.dispose]();
  }
}
