/** The device service: an HTTP collaborator that may be slow, wrong or away. It never decides more than it knows. */
import { createBreaker, type Clock } from 'redrive';
import type { Host } from '@redrive/engine/internal';
import type { DeviceFacts } from '../model/assess.ts';
import { readDevice } from './device-answer.ts';
import { inTime } from './in-time.ts';

export interface Devices {
  /** Never rejects: what nobody can say is absent. */
  look(deviceId: string): Promise<DeviceFacts>;
}

export interface DeviceServiceOptions {
  /** `GET {url}/devices/{id}` gives `{active, platform, last_seen}`. */
  url: string | URL;
  /** 2 s. */
  timeoutMs?: number;
  /** How long an answer is good for (10 s). */
  cacheMs?: number;
  /** Requests at once (32). */
  concurrency?: number;
  headers?: Readonly<Record<string, string>>;
  fetch?: typeof fetch;
  /** Told of each question: what came of it. */
  onAnswer?: (outcome: 'active' | 'inactive' | 'unknown' | 'invalid' | 'failed' | 'open') => void;
}

const MAX_CACHED = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;
const WARN_EVERY_MS = 60_000;

export function deviceService(
  options: DeviceServiceOptions,
  host: Pick<Host, 'clock' | 'log'>,
): Devices {
  return new DeviceService(options, host);
}

interface Cached {
  facts: DeviceFacts;
  untilMs: number;
}

class DeviceService implements Devices {
  readonly #options: DeviceServiceOptions;
  readonly #clock: Clock;
  readonly #log: Host['log'];
  readonly #breaker;
  readonly #cache = new Map<string, Cached>();
  readonly #underway = new Map<string, Promise<DeviceFacts>>();
  /** In the order in which they came. */
  readonly #waiting = new Set<() => void>();
  #running = 0;
  #warnedAtMs = -Infinity;

  constructor(options: DeviceServiceOptions, { clock, log }: Pick<Host, 'clock' | 'log'>) {
    this.#options = options;
    this.#clock = clock;
    this.#log = log;
    this.#breaker = createBreaker({ clock, failures: 5, openFor: '10s' });
  }

  look(deviceId: string): Promise<DeviceFacts> {
    const cached = this.#cache.get(deviceId);
    if (cached && this.#clock.monotonic() < cached.untilMs) return Promise.resolve(cached.facts);
    const underway = this.#underway.get(deviceId);
    if (underway) return underway;
    const asked = this.#ask(deviceId).finally(() => this.#underway.delete(deviceId));
    this.#underway.set(deviceId, asked);
    return asked;
  }

  async #ask(deviceId: string): Promise<DeviceFacts> {
    if (!(await this.#enter())) return {};
    try {
      const ticket = this.#breaker.admit();
      if (ticket === undefined) {
        this.#options.onAnswer?.('open');
        return {};
      }
      return await this.#request(deviceId, ticket);
    } finally {
      this.#running -= 1;
      const [next] = this.#waiting;
      if (next) this.#waiting.delete(next);
      next?.();
    }
  }

  async #request(deviceId: string, ticket: number): Promise<DeviceFacts> {
    const { onAnswer } = this.#options;
    let answer: { status: number; text: string };
    try {
      answer = await this.#fetch(deviceId);
      if (answer.status >= 500 || answer.status === 429) {
        throw new Error(`The device service answered with ${answer.status}.`);
      }
    } catch (err) {
      this.#breaker.failed(ticket, { class: 'transient', code: 'DEVICE_SERVICE' });
      this.#warn({ err }, 'the device service is away; devices count as unknown');
      onAnswer?.('failed');
      return {};
    }
    this.#breaker.succeeded(ticket);
    const facts = readDevice(answer.status, answer.text);
    if (facts === undefined) {
      const { status } = answer;
      this.#warn(
        { status, code: 'DEVICE_ANSWER_INVALID' },
        'the device service gave an answer that cannot be read; the device counts as unknown',
      );
      onAnswer?.('invalid');
      return {};
    }
    onAnswer?.(facts.active === undefined ? 'unknown' : facts.active ? 'active' : 'inactive');
    this.#remember(deviceId, facts);
    return facts;
  }

  async #fetch(deviceId: string): Promise<{ status: number; text: string }> {
    const { url, timeoutMs = 2000, headers, fetch: ask = fetch } = this.#options;
    const base = String(url).replace(/\/+$/, '');
    const limit = new AbortController();
    const asked = ask(`${base}/devices/${encodeURIComponent(deviceId)}`, {
      headers: { accept: 'application/json', ...headers },
      signal: limit.signal,
      redirect: 'error',
    }).then(async (response) => ({ status: response.status, text: await bodyOf(response) }));
    try {
      return await inTime(this.#clock, timeoutMs, 'The device service', asked);
    } finally {
      limit.abort();
      asked.catch(() => undefined);
    }
  }

  /** False: the service is so slow that others are asked about for too long. Reports must not wait for that. */
  #enter(): Promise<boolean> {
    const { concurrency = 32, timeoutMs = 2000, onAnswer } = this.#options;
    if (this.#running < concurrency) {
      this.#running += 1;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const enter = () => {
        this.#clock.clearTimer(timer);
        this.#running += 1;
        resolve(true);
      };
      const timer = this.#clock.setTimer(() => {
        this.#waiting.delete(enter);
        this.#warn({}, 'the device service is too slow; devices count as unknown');
        onAnswer?.('failed');
        resolve(false);
      }, timeoutMs);
      this.#waiting.add(enter);
    });
  }

  #remember(deviceId: string, facts: DeviceFacts): void {
    const { cacheMs = 10_000 } = this.#options;
    if (cacheMs <= 0) return;
    this.#cache.delete(deviceId);
    this.#cache.set(deviceId, { facts, untilMs: this.#clock.monotonic() + cacheMs });
    if (this.#cache.size <= MAX_CACHED) return;
    const [oldest] = this.#cache.keys();
    this.#cache.delete(oldest!);
  }

  #warn(fields: object, message: string): void {
    const nowMs = this.#clock.monotonic();
    if (nowMs - this.#warnedAtMs < WARN_EVERY_MS) return;
    this.#warnedAtMs = nowMs;
    this.#log.warn(fields, message);
  }
}

async function bodyOf(response: Response): Promise<string> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const part of response.body ?? []) {
    text += decoder.decode(part, { stream: true });
    if (text.length > MAX_ANSWER_BYTES)
      throw new Error('The device service gave too large an answer.');
  }
  return text + decoder.decode();
}
