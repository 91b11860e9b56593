/** The numbers of the Cyoda member. Counted in plain fields, and written when somebody asks for the page. */
import type { MemberObserver, MemberState } from '../../cyoda/member.ts';
import type { MetricSet } from './registry.ts';

export class CyodaCounts implements MemberObserver {
  readonly #set: MetricSet;
  readonly #joins = new Map<string, number>();
  readonly #requests = new Map<string, number>();
  /** The member that the gauge shows. Without one the gauge is absent. */
  member: { readonly state: MemberState } | undefined;

  constructor(set: MetricSet) {
    this.#set = set;
    set.cyodaConnected.remove();
  }

  joined(result: string): void {
    this.#joins.set(result, (this.#joins.get(result) ?? 0) + 1);
  }

  requests(outcome: string, count: number): void {
    this.#requests.set(outcome, (this.#requests.get(outcome) ?? 0) + count);
  }

  /** Requests by outcome, for a log. */
  get totals(): Record<string, number> {
    return Object.fromEntries(this.#requests);
  }

  write(): void {
    const { cyodaConnected, cyodaJoins, cyodaRequests } = this.#set;
    cyodaJoins.reset();
    cyodaRequests.reset();
    for (const [result, count] of this.#joins) cyodaJoins.inc({ result }, count);
    for (const [outcome, count] of this.#requests) cyodaRequests.inc({ outcome }, count);
    if (this.member) cyodaConnected.set(this.member.state.status === 'joined' ? 1 : 0);
  }
}
