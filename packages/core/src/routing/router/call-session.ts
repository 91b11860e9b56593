import { isThenable, notify } from '../../run/notify.ts';
import type { Runtime } from '../../run/runtime.ts';
import { reportFault } from '../../system.ts';
import { Watch } from '../../run/watch.ts';
import { scalarText } from '../read-document.ts';
import { isSession, type RouteContext, type StickySession } from '../route-context.ts';
import { countsForBreaker, isRateLimit } from './failure-status.ts';
import type { RouterSettings } from './router-options.ts';
import type { MaybePromise, StickyStore } from './sticky-store.ts';

/** A store of sessions that is slower than this counts as having none. */
const STICKY_LIMIT_MS = 1000;

/** The sticky session of one call. A store that fails or is late costs the session, never the call. */
export class CallSession {
  readonly #store: StickyStore;
  readonly #settings: RouterSettings;
  readonly #key: string;

  /** Undefined for a request that names no session. The key has the policy and the tenant in it. */
  static of(
    store: StickyStore,
    settings: RouterSettings,
    context: RouteContext,
  ): CallSession | undefined {
    const { id, sticky } = settings.policy;
    const value = scalarText(context[sticky.sessionKey]);
    if (value === undefined) return undefined;
    const key = JSON.stringify([id, scalarText(context.tenant_id) ?? null, value]);
    return new CallSession(store, settings, key);
  }

  private constructor(store: StickyStore, settings: RouterSettings, key: string) {
    this.#store = store;
    this.#settings = settings;
    this.#key = key;
  }

  /** The context with the session, unless the caller has given one. */
  async addTo(context: RouteContext, runtime: Runtime<never>): Promise<RouteContext> {
    if (context.sticky != null) return context;
    const session = await this.#read(runtime);
    return session ? { ...context, sticky: session } : context;
  }

  write(provider: string): void {
    notify('writing a sticky session', () => this.#set(provider));
  }

  drop(): void {
    notify('deleting a sticky session', () => this.#store.delete(this.#key));
  }

  /** As `write`, waiting for the store. */
  async save(provider: string, runtime: Runtime<never>): Promise<void> {
    await bounded('writing a sticky session', () => this.#set(provider), runtime);
  }

  /** A session whose provider is in trouble would lead the next request there again. */
  async dropAfter(status: string, provider: string, runtime: Runtime<never>): Promise<void> {
    if (!countsForBreaker(status) && !isRateLimit(status)) return;
    const session = await this.#read(runtime);
    if (session?.provider !== provider) return;
    await bounded('deleting a sticky session', () => this.#store.delete(this.#key), runtime);
  }

  #set(provider: string): MaybePromise<void> {
    const { policy, clock } = this.#settings;
    const session = { provider, expires_at_ms: clock.now() + policy.sticky.ttlMs };
    return this.#store.set(this.#key, session);
  }

  async #read(runtime: Runtime<never>): Promise<StickySession | undefined> {
    const what = 'reading a sticky session';
    const found = await bounded(what, () => this.#store.get(this.#key), runtime);
    return isSession(found) ? found : undefined;
  }
}

/** What the store answers; undefined where it fails, or is late. */
async function bounded<T>(
  what: string,
  ask: () => MaybePromise<T>,
  runtime: Runtime<never>,
): Promise<T | undefined> {
  try {
    const answer = ask();
    if (!isThenable(answer)) return answer;
    const watch = new Watch(runtime);
    const ending = await watch.until(STICKY_LIMIT_MS, Promise.resolve(answer));
    watch.close();
    if (ending.kind === 'result') return ending.result;
    if (ending.kind === 'error') reportFault(`${what} failed`, ending.error);
  } catch (error) {
    reportFault(`${what} failed`, error);
  }
  return undefined;
}
