import { scalarText } from './read-document.ts';
import type { ReadContext } from './route-context.ts';
import type { RoutingPolicy, RoutingRule } from './routing-policy.ts';

/** `minimal`: no steps. `verbose`: also the providers and rules that were looked at. */
export type DetailLevel = 'minimal' | 'detailed' | 'verbose';

export const detailLevels: readonly string[] = ['minimal', 'detailed', 'verbose'];

/** What was decided, before it is put into words. `used` counts the retry that was just granted. */
export type Outcome =
  | { reason: 'sticky'; provider: string }
  | { reason: 'weighted'; provider: string; count: number; total: number }
  | { reason: 'retry'; provider: string; rule: RoutingRule; used: number; backoffMs: number }
  | {
      reason: 'fallback' | 'circuit_breaker_fallback';
      provider: string;
      rule: RoutingRule;
      used: number;
      /** A retry was left, and the caller preferred the fallback. */
      skipped: boolean;
    }
  | { reason: 'no_fallback'; rule?: RoutingRule; used?: number }
  | { reason: 'no_providers'; count: number };

/** Why a provider was chosen, as JSON. */
export interface RouteExplanation {
  reason: Outcome['reason'];
  /** Null for an error. */
  provider_id: string | null;
  policy_id: string;
  policy_version: string;
  /** 100 sticky, 50 weighted and retry, 25 fallback, 20 circuit_breaker_fallback, 0 for an error. */
  priority: number;
  /** In order. The numbers are stages: 1 sticky, 2 weighted, 3 retry or fallback. */
  steps: string[];
  context: ExplanationContext;
  /** With `verbose` only. */
  details?: ExplanationDetails;
}

export interface ExplanationContext {
  tenant_id: string;
  trace_id?: string;
  retry_attempts_used?: number;
  retry_max?: number;
  backoff_ms?: number;
  fallback_rule_id?: string;
}

export interface ExplanationDetails {
  seed: number;
  status?: string;
  /** At most 100 of each. */
  providers: { provider: string; weight: number; open: boolean; exhausted: boolean }[];
  rules: { rule_id: string; to: string; retry_attempts_used: number; retry_max: number }[];
}

const MAX_LISTED = 100;
const MAX_TEXT = 200;

const priorities: Readonly<Record<Outcome['reason'], number>> = {
  sticky: 100,
  weighted: 50,
  retry: 50,
  fallback: 25,
  circuit_breaker_fallback: 20,
  no_fallback: 0,
  no_providers: 0,
};

export function explanationOf(
  policy: RoutingPolicy,
  read: ReadContext,
  outcome: Outcome,
  seed: number,
  level: DetailLevel,
): RouteExplanation {
  const { reason } = outcome;
  const explanation: RouteExplanation = {
    reason,
    provider_id: 'provider' in outcome ? outcome.provider : null,
    policy_id: policy.id,
    policy_version: policy.version,
    priority: priorities[reason],
    steps: level === 'minimal' ? [] : stepsOf(policy, read, outcome),
    context: contextOf(read, outcome),
  };
  if (level === 'verbose') explanation.details = detailsOf(policy, read, seed);
  return explanation;
}

/** The explanation as a text: one line for the decision, one for each step. */
export function explainRoute(explanation: RouteExplanation): string {
  const { reason, provider_id: provider, policy_id: id, policy_version: version } = explanation;
  const what = provider === null ? `No provider: ${reason}` : `Provider ${provider}: ${reason}`;
  const head = `${what} (priority ${explanation.priority}, policy ${id} ${version})`;
  return [head, ...explanation.steps.map((step) => `  ${step}`)].join('\n');
}

function stepsOf(policy: RoutingPolicy, read: ReadContext, outcome: Outcome): string[] {
  switch (outcome.reason) {
    case 'sticky': {
      const { sessionKey } = policy.sticky;
      const session = textOf(read.context[sessionKey]) ?? 'unknown';
      return [
        `1. Checked sticky session: found existing provider for key ${sessionKey} = ${session}`,
      ];
    }
    case 'weighted':
      return chosenBy(policy, outcome.count, outcome.total);
    case 'no_providers':
      return chosenBy(policy, outcome.count, 0);
    case 'retry': {
      const { used, rule, backoffMs } = outcome;
      return [`3. Retry attempt ${used}/${rule.retry} with backoff ${backoffMs}ms`];
    }
    case 'fallback': {
      const { used, rule, skipped } = outcome;
      return [
        skipped
          ? `3. Applied fallback rule without further retries, ${used}/${rule.retry} retry attempts used`
          : `3. Applied fallback rule after ${Math.min(used, rule.retry)}/${rule.retry} retry attempts exhausted`,
      ];
    }
    case 'circuit_breaker_fallback': {
      const { used, rule } = outcome;
      const count = `${Math.min(used, rule.retry)}/${rule.retry} retry attempts used`;
      return [`3. Applied fallback rule: circuit breaker of ${read.current} is open, ${count}`];
    }
    case 'no_fallback': {
      const { used, rule } = outcome;
      return [
        rule
          ? `3. No fallback provider left after ${used}/${rule.retry} retry attempts`
          : '3. No fallback rule matches',
      ];
    }
  }
}

function chosenBy(policy: RoutingPolicy, count: number, total: number): string[] {
  const draw = `2. Applied weighted distribution: ${count} providers, total weight: ${total}`;
  return policy.sticky.enabled
    ? ['1. Checked sticky session: no existing session found', draw]
    : [draw];
}

function contextOf({ context }: ReadContext, outcome: Outcome): ExplanationContext {
  const explained: ExplanationContext = { tenant_id: textOf(context.tenant_id) ?? 'unknown' };
  const trace = textOf(context.trace_id);
  if (trace !== undefined) explained.trace_id = trace;
  if (!('rule' in outcome) || !outcome.rule) return explained;
  const { rule, used = 0 } = outcome;
  explained.retry_attempts_used = Math.min(used, rule.retry);
  explained.retry_max = rule.retry;
  if (outcome.reason === 'retry') explained.backoff_ms = outcome.backoffMs;
  explained.fallback_rule_id = rule.id;
  return explained;
}

function detailsOf(policy: RoutingPolicy, read: ReadContext, seed: number): ExplanationDetails {
  const { context, open, exhausted } = read;
  const details: ExplanationDetails = {
    seed,
    providers: policy.providers.slice(0, MAX_LISTED).map(({ name, weight }) => ({
      provider: name,
      weight,
      open: open.has(name),
      exhausted: exhausted.has(name),
    })),
    rules: policy.rules.slice(0, MAX_LISTED).map(({ id, to, retry, counter }) => ({
      rule_id: id,
      to,
      retry_attempts_used: (context[counter] ?? 0) as number,
      retry_max: retry,
    })),
  };
  const status = textOf(context.status);
  if (status !== undefined) details.status = status;
  return details;
}

/** A value of the caller's, cut: an explanation must not repeat a megabyte. */
function textOf(value: unknown): string | undefined {
  const text = scalarText(value);
  return text !== undefined && text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}...` : text;
}
