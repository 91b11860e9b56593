import type { AuditEntry, AuditEvent } from '../audit/audit-events.ts';
import { AuditTrail, type AuditWriter } from '../audit/audit-trail.ts';
import type { Clock } from '../clock.ts';
import { isThenable } from '../run/notify.ts';
import type { DefinedPolicy } from '../policy/policy.ts';
import { freshId, hostTurn, reportFault } from '../system.ts';
import type { AuditFunction, ManagerAudit } from './manager-options.ts';

/** The trail of a manager: to a sink in batches, or to a function event by event. */
export class ManagerTrail {
  readonly hasSuccesses: boolean;
  readonly #trail: AuditTrail;
  #failed = 0;

  constructor(audit: ManagerAudit | undefined, clock: Clock) {
    this.hasSuccesses = audit?.successes === true;
    const to = audit?.to;
    this.#trail = new AuditTrail({
      sink: typeof to === 'function' ? this.#each(to) : to,
      strict: audit?.strict === true,
      instance: freshId(),
      clock,
      defer: async (callback) => {
        await hostTurn();
        callback();
      },
      report: (what, facts) => reportFault(what, facts),
    });
  }

  get isOn(): boolean {
    return this.#trail.isOn;
  }

  /** Events that were not taken. */
  get failures(): number {
    return this.#trail.dropped + this.#failed;
  }

  write(entry: AuditEntry): void {
    this.#trail.write(entry);
  }

  register(policy: DefinedPolicy): void {
    this.#trail.register(policy);
  }

  flush(): Promise<void> {
    return this.#trail.flush();
  }

  /** A function is called once for each event: one that fails does not get the others again. */
  #each(audit: AuditFunction): AuditWriter {
    const fail = (error: unknown) => {
      this.#failed += 1;
      reportFault('the audit function failed', error);
    };
    return {
      write: (events: readonly AuditEvent[]) => {
        for (const event of events) {
          try {
            const returned = audit(event);
            if (isThenable(returned)) Promise.resolve(returned).catch(fail);
          } catch (error) {
            fail(error);
          }
        }
      },
    };
  }
}
