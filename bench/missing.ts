/** A machine does not have every server: a case runs with those who can, and names the others. */
import { found, type ServiceName } from '@redrive/services';

/** What a case cannot do without. It is not run, and that is said in its place. */
export class MissingServer extends Error {
  override readonly name = 'MissingServer';
}

/** Throws where this server cannot be started here. */
export function requireServer(server: ServiceName): void {
  const why = reasonWithout(server);
  if (why !== undefined) throw new MissingServer(why);
}

/** Why there is none of it, and what would change that; undefined: it can be started. */
export function reasonWithout(server: ServiceName): string | undefined {
  const answer = found(server);
  if (answer.state === 'found') return undefined;
  return `${server} is missing: ${answer.why}. To have it: ${answer.wayOut}`;
}

export interface Present<T> {
  here: T[];
  /** By name, why it is not here. */
  missing: Record<string, string>;
}

/** Those who have their server. Without `redrive` there is nothing to compare. */
export function present<T extends { name: string }>(
  contestants: readonly T[],
  serverOf: (contestant: T) => ServiceName | undefined,
  reason: (server: ServiceName) => string | undefined = reasonWithout,
): Present<T> {
  const here: T[] = [];
  const missing: Record<string, string> = {};
  for (const one of contestants) {
    const server = serverOf(one);
    const why = server === undefined ? undefined : reason(server);
    if (why === undefined) here.push(one);
    else if (one.name === 'redrive') throw new MissingServer(why);
    else missing[one.name] = why;
  }
  return { here, missing };
}
