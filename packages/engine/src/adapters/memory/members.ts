import type { ActResult, Member, MemberQuery } from '../../ports/inbox.ts';

/** Who belongs to which bulk job, and what became of each. */
export class Members {
  readonly #jobs = new Map<number, Map<number, ActResult | undefined>>();

  add(job: number, itemId: number): void {
    const members = this.#jobs.get(job) ?? new Map<number, ActResult | undefined>();
    if (!members.has(itemId)) members.set(itemId, undefined);
    this.#jobs.set(job, members);
  }

  mark(job: number, itemId: number, result: ActResult): void {
    const members = this.#jobs.get(job);
    if (result !== 'done' && members?.has(itemId)) members.set(itemId, result);
  }

  list({ job, result: wanted, after, upTo = Infinity, limit }: MemberQuery): Member[] {
    const isWanted = (result: ActResult = 'done') => !wanted || result === wanted;
    return [...(this.#jobs.get(job) ?? [])]
      .filter(([itemId, result]) => itemId > after && itemId <= upTo && isWanted(result))
      .sort(([a], [b]) => a - b)
      .slice(0, limit)
      .map(([itemId, result]) => ({ itemId, ...(result ? { result } : {}) }));
  }

  /** True: none are left. */
  forget(job: number, limit: number): boolean {
    const members = this.#jobs.get(job);
    for (const itemId of [...(members?.keys() ?? [])].slice(0, limit)) members!.delete(itemId);
    if (members?.size) return false;
    return this.#jobs.delete(job) || true;
  }
}
