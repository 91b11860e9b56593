import { ConfigError, type Fault } from '../errors.ts';
import { nearest, show } from '../options/faults.ts';
import { COUNTER_PREFIX, type RoutingPolicy } from './routing-policy.ts';

/**
 * What a decision is about, as plain JSON. A caller starts with a `request_id` and fields of its own, hands back the context
 * of each decision, and adds `status` after a failure. `null` counts as absent.
 */
export interface RouteContext {
  /** Identifies the request. The weighted draw and the jitter are derived from the seed and from this. */
  request_id?: string | number | null | undefined;
  /** The provider that was called last. */
  current_provider?: string | null | undefined;
  /** What that call failed with: `timeout`, `connection_error`, `rate_limit`, `5xx`, `503`, a word of one's own. */
  status?: string | number | null | undefined;
  /** Providers that this request has left. They are never chosen again. */
  exhausted_providers?: readonly string[] | null | undefined;
  /** Providers that must not be called now: their breaker is open, or they asked for a pause. */
  open_providers?: readonly string[] | null | undefined;
  /** The session of this request, where there is one. */
  sticky?: StickySession | null | undefined;
  /** What the failed provider asked for: no retry before this. */
  retry_after_ms?: number | null | undefined;
  /** True: prefer the fallback to a retry. Where no fallback is left, the retry stands. */
  skip_retry?: boolean | null | undefined;
  tenant_id?: string | number | null | undefined;
  trace_id?: string | number | null | undefined;
  /** `retry_attempts_<rule id>`, and whatever rules compare. */
  [key: string]: unknown;
}

export interface StickySession {
  provider: string;
  expires_at_ms: number;
}

/** Something in a context that was ignored. */
export interface ContextWarning {
  code: 'UNKNOWN_COUNTER' | 'UNKNOWN_PROVIDER' | 'STATUS_WITHOUT_PROVIDER';
  path: string;
  message: string;
}

/** A context after its check. `next` is the copy that the decision completes and hands back. */
export interface ReadContext {
  readonly context: RouteContext;
  readonly next: Record<string, unknown>;
  readonly requestId: string;
  readonly current: string | undefined;
  readonly exhausted: Names;
  readonly open: Names;
  readonly warnings: readonly ContextWarning[];
}

/** A list of names to look up. */
interface Names {
  readonly size: number;
  has(name: string): boolean;
}

const MAX_KEYS = 1000;
const MAX_NAMES = 1000;
const MAX_SHOWN = 20;
const noWarnings: readonly ContextWarning[] = Object.freeze([]);
const noNames: Names = { size: 0, has: () => false };

/** Checks a context. Throws a `ConfigError` for what cannot be decided on, and warns of what is ignored. */
export function readContext(policy: RoutingPolicy, context: RouteContext): ReadContext {
  if (typeof context !== 'object' || context === null || Array.isArray(context)) {
    refuse([['', `${show(context)} is not an object.`]]);
  }
  const warnings: ContextWarning[] = [];
  const next = copy(policy, context, warnings);
  checkKinds(context);
  const current = context.current_provider ?? undefined;
  if (current !== undefined && !policy.hasProvider(current)) {
    refuseProvider(policy, 'current_provider', current);
  }
  if (current === undefined && context.status != null) {
    const message = 'There is a status but no current_provider, so the status was ignored.';
    warnings.push({ code: 'STATUS_WITHOUT_PROVIDER', path: 'status', message });
  }
  const { request_id: requestId } = context;
  return {
    context,
    next,
    requestId: typeof requestId === 'string' ? requestId : String(requestId ?? ''),
    current,
    exhausted: namesOf(policy, context, 'exhausted_providers', warnings),
    open: namesOf(policy, context, 'open_providers', warnings),
    warnings: warnings.length === 0 ? noWarnings : warnings,
  };
}

/** Everything but what belongs to one failure only. */
function copy(policy: RoutingPolicy, context: RouteContext, warnings: ContextWarning[]) {
  const next: Record<string, unknown> = {};
  const keys = Object.keys(context);
  if (keys.length > MAX_KEYS)
    refuse([['', `A context has at most ${MAX_KEYS} keys, not ${keys.length}.`]]);
  for (const key of keys) {
    if (key === 'status' || key === 'skip_retry') continue;
    const value = context[key];
    // An assignment to `__proto__` would change the prototype instead.
    if (key === '__proto__') Object.defineProperty(next, key, { value, enumerable: true });
    else next[key] = value;
    if (key.startsWith(COUNTER_PREFIX)) checkCounter(policy, key, value, warnings);
  }
  return next;
}

function checkCounter(
  policy: RoutingPolicy,
  key: string,
  value: unknown,
  warnings: ContextWarning[],
): void {
  if (!policy.hasCounter(key)) {
    if (warnings.length >= MAX_SHOWN) return;
    const message = 'No rule of this policy has this id, so the counter was ignored.';
    warnings.push({ code: 'UNKNOWN_COUNTER', path: key.slice(0, 100), message });
  } else if (value != null && !(Number.isSafeInteger(value) && (value as number) >= 0)) {
    refuse([[key, `${show(value)} is not a whole number of at least 0.`]]);
  }
}

function checkKinds(context: RouteContext): void {
  const { request_id: id, current_provider: current, status } = context;
  const { sticky, retry_after_ms: waitMs, skip_retry: skip } = context;
  let faults: [string, string][] | undefined;
  if (id != null && !isTextOrNumber(id)) {
    (faults ??= []).push(not('request_id', id, 'a text or a number'));
  }
  if (current != null && typeof current !== 'string') {
    (faults ??= []).push(not('current_provider', current, 'a text'));
  }
  if (status != null && !isTextOrNumber(status)) {
    (faults ??= []).push(not('status', status, 'a text or a number'));
  }
  if (waitMs != null && !(typeof waitMs === 'number' && waitMs >= 0)) {
    (faults ??= []).push(not('retry_after_ms', waitMs, 'a number of ms of at least 0'));
  }
  if (skip != null && typeof skip !== 'boolean') {
    (faults ??= []).push(not('skip_retry', skip, 'true or false'));
  }
  if (sticky != null && !isSession(sticky)) {
    const wanted = 'an object with provider, a text, and expires_at_ms, a number';
    (faults ??= []).push(not('sticky', sticky, wanted));
  }
  if (faults) refuse(faults);
}

function not(path: string, value: unknown, wanted: string): [string, string] {
  return [path, `${show(value)} is not ${wanted}.`];
}

export function isSession(value: unknown): value is StickySession {
  const { provider, expires_at_ms: until } = Object(value) as Partial<StickySession>;
  return typeof provider === 'string' && typeof until === 'number';
}

function isTextOrNumber(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number';
}

function namesOf(
  policy: RoutingPolicy,
  context: RouteContext,
  key: 'exhausted_providers' | 'open_providers',
  warnings: ContextWarning[],
): Names {
  const list: unknown = context[key];
  if (list == null) return noNames;
  if (!Array.isArray(list) || list.length > MAX_NAMES || !list.every(isText)) {
    refuse([[key, `${show(list)} is not a list of at most ${MAX_NAMES} names.`]]);
  }
  if (list.length === 0) return noNames;
  const strangers = list.filter((name) => !policy.hasProvider(name));
  if (strangers.length > 0) {
    const names = strangers.slice(0, MAX_SHOWN).map((name) => name.slice(0, 100));
    const message = `The policy has no provider ${names.join(', ')}, so the name was ignored.`;
    warnings.push({ code: 'UNKNOWN_PROVIDER', path: key, message });
  }
  return new Set(list);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function refuse(found: readonly [path: string, message: string][]): never {
  const faults = found.map(([path, message]): Fault => ({ path, code: 'INVALID_VALUE', message }));
  throw new ConfigError('INVALID_CONTEXT', 'The routing context has faults:', faults);
}

/** Says which providers exist. `field` is where the name stood. */
export function refuseProvider(policy: RoutingPolicy, field: string, name: string): never {
  const names = policy.providers.map((each) => each.name);
  const near = nearest(name, names);
  const shown = names.slice(0, MAX_SHOWN).join(', ');
  const more = names.length > MAX_SHOWN ? ` and ${names.length - MAX_SHOWN} more` : '';
  const hint = near === undefined ? '' : ` Did you mean '${near}'?`;
  throw new ConfigError(
    'UNKNOWN_PROVIDER',
    `${field} is ${show(name)}, which is no provider of the policy '${policy.id}'. Its providers are: ${shown}${more}.${hint}`,
  );
}
