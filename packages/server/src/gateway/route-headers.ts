/** What the gateway says about its decisions, in the headers of every answer. */
import type { RouteAttemptRecord, RouteExplanation } from 'redrive';

const MAX_EXPLANATION = 512;

export interface Routed {
  attempts: readonly RouteAttemptRecord[];
  explanation?: RouteExplanation | undefined;
  provider?: string | undefined;
}

/** A flat list of names and values. */
export function routeHeaders({ attempts, explanation, provider }: Routed): string[] {
  const headers = ['x-redrive-attempts', String(attempts.length)];
  const last = provider ?? attempts.at(-1)?.provider;
  if (last !== undefined) headers.push('x-redrive-provider', last);
  const text = explained(attempts, explanation);
  if (text !== '') headers.push('x-redrive-explanation', text);
  return headers;
}

/** One line of ASCII: `primary 503, backup ok; fallback: 3. Applied fallback rule ...`. */
function explained(
  attempts: readonly RouteAttemptRecord[],
  explanation: RouteExplanation | undefined,
): string {
  const story = attempts.map(({ provider, status, outcome }) => `${provider} ${status ?? outcome}`);
  const why = explanation ? [explanation.reason, ...explanation.steps.slice(-1)] : [];
  const text = [story.join(', '), why.join(': ')].filter((part) => part !== '').join('; ');
  const ascii = text.replaceAll(/[^\x20-\x7e]/g, '?');
  return ascii.length > MAX_EXPLANATION ? `${ascii.slice(0, MAX_EXPLANATION - 3)}...` : ascii;
}
