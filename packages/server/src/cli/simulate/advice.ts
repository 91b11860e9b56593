/** What a comparison says about a policy, in a few sentences. */
import { type DefinedPolicy, type Policy, simulate, type Simulation } from 'redrive';
import { count } from '../terminal/terminal.ts';
import type { Comparison, Jitter } from './compare.ts';

/** The most important first; nothing where there is nothing to say. */
export function advise(comparison: Comparison): string[] {
  const { policy, own } = comparison;
  return [outlast(policy, own), otherJitter(comparison), timedOut(own), fine(comparison)].filter(
    (sentence) => sentence !== undefined,
  );
}

const MORE_ATTEMPTS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
const MAX_CLIENTS_TRIED = 2000;

/** Clients that ran out of attempts, and how many attempts would have been enough. */
function outlast(policy: DefinedPolicy, own: Simulation): string | undefined {
  const exhausted = own.gaveUp.EXHAUSTED ?? 0;
  if (exhausted === 0) return undefined;
  // A smaller world of the same proportions is as good a guess, and much faster.
  const scale = Math.min(1, MAX_CLIENTS_TRIED / own.world.clients);
  const world = {
    ...own.world,
    clients: Math.ceil(own.world.clients * scale),
    capacity: Math.ceil(own.world.capacity * scale),
  };
  const enough = MORE_ATTEMPTS.map((more) => policy.maxAttempts + more).find((maxAttempts) => {
    const { gaveUp, succeeded } = simulate({ ...(policy as Policy), maxAttempts }, world);
    return gaveUp.EXHAUSTED === undefined && succeeded > 0;
  });
  const hint = enough
    ? `With maxAttempts ${enough} nobody would.`
    : 'More attempts alone do not help: let them wait longer (base, multiplier, cap).';
  return `${clients(exhausted)} ran out of attempts. ${hint}`;
}

/** A jitter that is clearly kinder to the service, or brings clearly more clients through, and is not worse at the other. */
function otherJitter({ policy, own, simulations }: Comparison): string | undefined {
  let best: [Jitter, Simulation] | undefined;
  for (const [jitter, one] of simulations) {
    const more = one.succeeded - own.succeeded;
    const kinder = one.peakAfterOutage < 0.75 * own.peakAfterOutage && more >= 0;
    const fewerLost = more > 0.01 * own.world.clients && one.peakAfterOutage <= own.peakAfterOutage;
    if ((kinder || fewerLost) && (!best || isBetter(one, best[1]))) best = [jitter, one];
  }
  if (!best) return undefined;
  const [jitter, { peakAfterOutage, succeeded }] = best;
  const more = succeeded - own.succeeded;
  return (
    `With jitter '${jitter}' instead of '${policy.jitter}' the service meets at most ${count(peakAfterOutage)} ` +
    `attempts a second when it is back, not ${count(own.peakAfterOutage)}` +
    `${more > 0 ? `, and ${count(more)} more clients get through` : ''}.`
  );
}

function isBetter(a: Simulation, b: Simulation): boolean {
  return a.succeeded === b.succeeded
    ? a.peakAfterOutage < b.peakAfterOutage
    : a.succeeded > b.succeeded;
}

function timedOut(own: Simulation): string | undefined {
  const attempts = own.outcomes.timedOut;
  if (attempts === 0) return undefined;
  return `${count(attempts)} attempts ended by attemptTimeout or deadline before their answer came. Work that the service did for them was in vain.`;
}

function fine(comparison: Comparison): string | undefined {
  const { own } = comparison;
  if (own.succeeded < own.world.clients || own.outcomes.timedOut > 0) return undefined;
  if (otherJitter(comparison) !== undefined) return undefined;
  return 'Everybody got through, and no other jitter would be clearly kinder to the service.';
}

function clients(number: number): string {
  return number === 1 ? '1 client' : `${count(number)} clients`;
}
