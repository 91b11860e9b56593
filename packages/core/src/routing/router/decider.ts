import { notify } from '../../run/notify.ts';
import { decideRoute, type RouteDecision } from '../decide-route.ts';
import type { DetailLevel } from '../explain-route.ts';
import type { RouteDecided } from '../route-audit.ts';
import type { RouteContext } from '../route-context.ts';
import type { ProviderState } from './provider-health.ts';
import type { RouteEvent } from './router.ts';
import type { RouterSettings } from './router-options.ts';
import type { StickyStore } from './sticky-store.ts';

/** What the requests of a router share. */
export interface RouterParts {
  settings: RouterSettings;
  states: ReadonlyMap<string, ProviderState>;
  sticky: StickyStore | undefined;
  audit: ((decided: RouteDecided) => void) | undefined;
}

/** A decision, and the context that it was made of. */
interface Decided {
  decision: RouteDecision;
  asked: RouteContext;
  nowMs: number;
}

type Distribute<T> = T extends unknown ? Omit<T, 'requestId' | 'seed'> : never;

/** Makes the decisions of one request with what the router knows of its providers. */
export class Decider {
  readonly requestId: string;
  readonly seed: number;
  readonly #parts: RouterParts;
  readonly #detailLevel: DetailLevel;
  readonly #givenOpen: readonly string[];
  /** Providers whose breaker refused this request. */
  #refused: Set<string> | undefined;

  /** `given` is the caller's context: what it calls open stays open for the whole request. */
  constructor(
    parts: RouterParts,
    given: RouteContext,
    requestId: string,
    seed: number,
    detailLevel: DetailLevel,
  ) {
    this.#parts = parts;
    this.requestId = requestId;
    this.seed = seed;
    this.#detailLevel = detailLevel;
    this.#givenOpen = Array.isArray(given.open_providers) ? given.open_providers : [];
  }

  /** The breaker of this provider has refused the request. */
  refuse(provider: string): void {
    (this.#refused ??= new Set()).add(provider);
  }

  /**
   * The decision. Where no provider with a weight can be called, a fallback is looked for. `mayCall` is asked about the
   * provider that was chosen; where it says no, another one is.
   */
  decide(context: RouteContext, mayCall?: (provider: string) => boolean): Decided {
    for (;;) {
      let decided = this.#make(context);
      if (decided.decision.result === 'error' && decided.decision.error === 'no_providers') {
        decided = this.#aroundOpen(decided.asked) ?? decided;
      }
      const { decision } = decided;
      if (decision.result === 'error' || !mayCall || mayCall(decision.provider)) {
        return this.#announce(decided);
      }
      this.refuse(decision.provider);
    }
  }

  /** The decision alone, without a look for a way around. */
  ask(context: RouteContext): Decided {
    return this.#announce(this.#make(context));
  }

  #make(context: RouteContext): Decided {
    const { policy, clock, on } = this.#parts.settings;
    const open = this.#openProviders(context);
    const asked = open ? { ...context, open_providers: open } : context;
    // Only sessions depend on the time, and those who listen want to know it.
    const nowMs = this.#parts.sticky || on || this.#parts.audit ? clock.now() : 0;
    const options = { seed: this.seed, detailLevel: this.#detailLevel, nowMs };
    return { decision: decideRoute(policy, asked, options), asked, nowMs };
  }

  /** Only what was decided in the end is told, not what was considered on the way. */
  #announce(decided: Decided): Decided {
    const { policy, on } = this.#parts.settings;
    const { decision, asked: context, nowMs } = decided;
    this.#parts.audit?.({ policy, context, nowMs, decision });
    if (on) this.tell({ type: 'decision', policy, context, nowMs, decision });
    return decided;
  }

  tell(event: Distribute<RouteEvent>): void {
    const { on } = this.#parts.settings;
    const whole: RouteEvent = { requestId: this.requestId, seed: this.seed, ...event };
    if (on) notify('a router listener', on, whole);
  }

  /**
   * No provider with a weight can be called. The fallback of the one that would have been chosen is tried: its breaker is
   * open because of failures that a rule may lead away from.
   */
  #aroundOpen(asked: RouteContext): Decided | undefined {
    const { policy, clock } = this.#parts.settings;
    const context = { ...asked, open_providers: this.#givenOpen };
    const wish = decideRoute(policy, context, { seed: this.seed, nowMs: clock.now() });
    if (wish.result !== 'ok') return undefined;
    const status = this.#parts.states.get(wish.provider)?.trouble;
    if (status === undefined) return undefined;
    const decided = this.#make({ ...wish.context, status, skip_retry: true });
    return decided.decision.result === 'ok' ? decided : undefined;
  }

  /** The providers that must not be called now. A pause does not keep the failed provider from its own retry. */
  #openProviders(context: RouteContext): string[] | undefined {
    const given: unknown = context.open_providers;
    // The decision says what is wrong with it.
    if (given != null && !Array.isArray(given)) return undefined;
    let open: string[] | undefined;
    const current = context.status == null ? undefined : context.current_provider;
    for (const [name, state] of this.#parts.states) {
      if (!state.isOpen && (name === current || !state.isCooling)) continue;
      (open ??= []).push(name);
    }
    if (!this.#refused && this.#givenOpen.length === 0) {
      // What the last decision was given must not stay open for ever.
      return open ?? (context.open_providers ? [] : undefined);
    }
    return [...new Set([...this.#givenOpen, ...(this.#refused ?? []), ...(open ?? [])])];
  }
}
