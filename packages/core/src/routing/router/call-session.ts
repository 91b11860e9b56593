import { isThenable, notify } from '../../notify.ts';
import type { Runtime } from '../../runtime.ts';
import { reportFault } from '../../system.ts';
import { Watch } from '../../watch.ts';
import { scalarText } from '../read-document.ts';
import { isSession, type RouteContext, type StickySession } from '../route-context.ts';
import type { RouterSettings } from './router-options.ts';
import type { StickyStore } from './sticky-store.ts';

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
    const { policy, clock } = this.#settings;
    const session = { provider, expires_at_ms: clock.now() + policy.sticky.ttlMs };
    notify('writing a sticky session', () => this.#store.set(this.#key, session));
  }

  drop(): void {
    notify('deleting a sticky session', () => this.#store.delete(this.#key));
  }

  async #read(runtime: Runtime<never>): Promise<StickySession | undefined> {
    try {
      const found = this.#store.get(this.#key);
      if (!isThenable(found)) return isSession(found) ? found : undefined;
      const watch = new Watch(runtime);
      const ending = await watch.until(STICKY_LIMIT_MS, Promise.resolve(found));
      watch.close();
      if (ending.kind === 'result') return isSession(ending.result) ? ending.result : undefined;
      if (ending.kind === 'error') reportFault('reading a sticky session failed', ending.error);
    } catch (error) {
      reportFault('reading a sticky session failed', error);
    }
    return undefined;
  }
}
