import type { RoutingPolicy, RoutingProvider, RoutingRule } from './routing-policy.ts';
import { covers } from './rule-match.ts';

/** Something about a policy that a reader should know. Nothing of it makes the policy invalid. */
export interface PolicyNote {
  code:
    | 'LEGACY_WEIGHTS'
    | 'LEGACY_FALLBACK'
    | 'WEIGHTS_NOT_100'
    | 'NO_WEIGHT'
    | 'UNKNOWN_TARGET'
    | 'UNKNOWN_CONDITION_PROVIDER'
    | 'NEVER_MATCHES'
    | 'DUPLICATE_RULE'
    | 'SHADOWED_RULE'
    | 'FALLBACK_CYCLE'
    | 'BASE_ABOVE_MAX'
    | 'STICKY_WITHOUT_TIME';
  path: string;
  message: string;
}

const MAX_WARNINGS = 200;

/** What is allowed in a policy and probably not meant. `listed` are the providers without the targets that were added. */
export function lintPolicy(
  policy: Pick<RoutingPolicy, 'rules' | 'sticky'>,
  listed: readonly RoutingProvider[],
): PolicyNote[] {
  const warnings = [
    ...lintWeights(listed),
    ...policy.rules.flatMap((rule, i) => lintRule(rule, i, listed)),
    ...lintOrder(policy.rules),
    ...lintCycles(policy.rules),
  ];
  if (policy.sticky.enabled && policy.sticky.ttlMs === 0) {
    const message = 'A session of 0 s expires at once, so no request finds one.';
    warnings.push({ code: 'STICKY_WITHOUT_TIME', path: 'sticky.ttl', message });
  }
  return warnings.slice(0, MAX_WARNINGS);
}

function lintWeights(listed: readonly RoutingProvider[]): PolicyNote[] {
  const sum = listed.reduce((total, { weight }) => total + weight, 0);
  if (sum === 0) {
    const message = 'All weights are 0, so no provider is ever a first choice: no_providers.';
    return [{ code: 'NO_WEIGHT', path: 'providers', message }];
  }
  if (sum === 100) return [];
  const message = `The weights sum to ${sum}, not to 100. They are shares in proportion to ${sum}.`;
  return [{ code: 'WEIGHTS_NOT_100', path: 'providers', message }];
}

function lintRule(
  { when, to, backoff }: RoutingRule,
  i: number,
  listed: readonly RoutingProvider[],
): PolicyNote[] {
  const path = `fallbacks.${i}`;
  const warnings: PolicyNote[] = [];
  const isListed = (name: string) => listed.some((each) => each.name === name);
  if (!isListed(to)) {
    const message = `'${to}' is not among the providers. It is added with weight 0.`;
    warnings.push({ code: 'UNKNOWN_TARGET', path: `${path}.to`, message });
  }
  for (const [key, values] of when) {
    if (values.length === 0) {
      const message = `'${key}' has no value to match, so the rule never matches.`;
      warnings.push({ code: 'NEVER_MATCHES', path: `${path}.when.${key}`, message });
    }
    if (key !== 'current_provider') continue;
    const strangers = values.filter((name) => !isListed(name) && name !== to);
    if (strangers.length > 0) {
      const message = `${strangers.join(', ')}: not among the providers.`;
      warnings.push({ code: 'UNKNOWN_CONDITION_PROVIDER', path: `${path}.when.${key}`, message });
    }
  }
  if (backoff.base > backoff.cap) {
    const message = `base_ms is ${backoff.base} and max_ms is ${backoff.cap}: every wait is ${backoff.cap} ms.`;
    warnings.push({ code: 'BASE_ABOVE_MAX', path: `${path}.backoff`, message });
  }
  return warnings;
}

/** Rules that an earlier rule always precedes. */
function lintOrder(rules: readonly RoutingRule[]): PolicyNote[] {
  const texts = rules.map(({ when, to, retry, backoff }) =>
    JSON.stringify([when, to, retry, backoff.fingerprint]),
  );
  return rules.flatMap((rule, i): PolicyNote[] => {
    const path = `fallbacks.${i}`;
    const twin = texts.indexOf(texts[i] as string);
    if (twin < i) {
      const message = `This rule is the same as fallbacks.${twin}. It has no effect.`;
      return [{ code: 'DUPLICATE_RULE', path, message }];
    }
    if (rule.when.some(([, values]) => values.length === 0)) return [];
    const earlier = rules.findIndex((each, j) => j < i && covers(each.when, rule.when));
    if (earlier < 0) return [];
    const message = `fallbacks.${earlier} always matches first. The retry and backoff of this rule are never used; its target is, where that of fallbacks.${earlier} cannot be.`;
    return [{ code: 'SHADOWED_RULE', path, message }];
  });
}

/** Cycles among rules that name the provider they start from. */
function lintCycles(rules: readonly RoutingRule[]): PolicyNote[] {
  const targets = new Map<string, { to: string; index: number }[]>();
  rules.forEach(({ when, to }, index) => {
    const from = when.find(([key]) => key === 'current_provider')?.[1] ?? [];
    for (const name of from) {
      if (name === to) continue;
      const list = targets.get(name);
      if (list) list.push({ to, index });
      else targets.set(name, [{ to, index }]);
    }
  });
  const done = new Set<string>();
  const warnings: PolicyNote[] = [];
  for (const start of targets.keys()) {
    const cycle = done.has(start) ? undefined : cycleFrom(start, targets, done);
    if (!cycle) continue;
    const message = `The fallbacks form a cycle: ${cycle.names.join(' -> ')}. A request tries each provider once, so it ends with no_fallback.`;
    warnings.push({ code: 'FALLBACK_CYCLE', path: `fallbacks.${cycle.index}`, message });
  }
  return warnings;
}

/** Depth first, without recursion: a chain may have a thousand links. */
function cycleFrom(
  start: string,
  targets: ReadonlyMap<string, { to: string; index: number }[]>,
  done: Set<string>,
): { names: string[]; index: number } | undefined {
  const path = [{ name: start, next: 0 }];
  const onPath = new Set([start]);
  let found: { names: string[]; index: number } | undefined;
  while (path.length > 0) {
    const top = path.at(-1) as { name: string; next: number };
    const edge = targets.get(top.name)?.[top.next++];
    if (!edge) {
      path.pop();
      onPath.delete(top.name);
      done.add(top.name);
    } else if (onPath.has(edge.to)) {
      const names = path.map(({ name }) => name);
      found ??= { names: [...names.slice(names.indexOf(edge.to)), edge.to], index: edge.index };
    } else if (!done.has(edge.to)) {
      path.push({ name: edge.to, next: 0 });
      onPath.add(edge.to);
    }
  }
  return found;
}
