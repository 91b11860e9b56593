/** The numbers of the gateway. Counted in plain fields, and written when somebody asks for the page. */
import type { Finished } from '../../gateway/gateway-call.ts';
import type { PlainSeries } from './plain-histogram.ts';
import type { MetricSet } from './registry.ts';

interface OfPolicy {
  readonly outcomes: Map<string, number>;
  readonly firstByte: PlainSeries;
}

export class GatewayCounts {
  readonly #set: MetricSet;
  /** There are as many as policies in the folder, which are bounded. */
  readonly #policies = new Map<string, OfPolicy>();
  /** Requests under way. */
  running: () => number = () => 0;

  constructor(set: MetricSet) {
    this.#set = set;
  }

  finished({ policy = '', outcome, firstByteMs }: Finished): void {
    const { outcomes, firstByte } = this.#of(policy);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    if (firstByteMs !== undefined) firstByte.observe(firstByteMs / 1000);
  }

  write(): void {
    const { gatewayRequests, gatewayRunning } = this.#set;
    gatewayRequests.reset();
    for (const [policy, { outcomes }] of this.#policies) {
      for (const [outcome, count] of outcomes) gatewayRequests.inc({ policy, outcome }, count);
    }
    gatewayRunning.set(this.running());
  }

  #of(policy: string): OfPolicy {
    let found = this.#policies.get(policy);
    if (!found) {
      found = { outcomes: new Map(), firstByte: this.#set.gatewayFirstByte.labels(policy) };
      this.#policies.set(policy, found);
    }
    return found;
  }
}
