import { guard, type Log } from '../host.ts';

/** `blocked`: the broker is short of memory or disk and takes no messages for now. */
export interface BrokerState {
  readonly state: 'connected' | 'connecting' | 'blocked' | 'closed';
  /** What is in the way, or what could not be declared. */
  readonly why?: string;
  /** Since when, in ms since the epoch. */
  readonly sinceMs: number;
}

/** What is known of one connection. */
export interface LinkState {
  readonly isUp: boolean;
  readonly why?: string;
}

export interface Report {
  state: BrokerState['state'];
  why: string | undefined;
  isReady: boolean;
}

interface Listeners {
  onState: (state: BrokerState) => void;
  log: Log;
  nowMs: () => number;
}

/** The state of both connections as one, told to whoever wants to know. */
export class StateBoard {
  readonly #listeners: Listeners;
  readonly #watchers = new Set<() => void>();
  #current: BrokerState;
  #isReady = false;

  constructor(listeners: Listeners) {
    this.#listeners = listeners;
    this.#current = { state: 'closed', sinceMs: listeners.nowMs() };
  }

  get current(): BrokerState {
    return this.#current;
  }

  /** Whether messages can be published. */
  get isReady(): boolean {
    return this.#isReady;
  }

  set({ state, why, isReady }: Report): void {
    const before = this.#current;
    if (before.state !== state || before.why !== why) {
      const sinceMs = before.state === state ? before.sinceMs : this.#listeners.nowMs();
      const next = { state, sinceMs, ...(why === undefined ? {} : { why }) };
      this.#current = next;
      this.#tell(() => this.#listeners.onState(next));
    }
    if (this.#isReady === isReady) return;
    this.#isReady = isReady;
    for (const watcher of this.#watchers) this.#tell(watcher);
  }

  watch(watcher: () => void): () => void {
    // One of its own each time: the same function may watch twice.
    const own = () => watcher();
    this.#watchers.add(own);
    return () => void this.#watchers.delete(own);
  }

  /** A listener that fails must not end the work. */
  #tell(listener: () => unknown): void {
    try {
      guard(listener());
    } catch (error) {
      this.#listeners.log.error({ err: error }, 'a listener of the broker failed');
    }
  }
}
