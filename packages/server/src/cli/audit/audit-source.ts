/** Where an audit trail comes from: a server, or lines of JSON. */
import { type AuditEvent, type DefinedPolicy, isConfigError, parsePolicy } from 'redrive';
import { isAuditEntry } from '../answers.ts';
import type { Client, Query } from '../client.ts';
import { linesOf } from '../terminal/lines.ts';

const PATH = '/api/v1/audit';
const MAX_LINE_BYTES = 4 * 1024 * 1024;
const MAX_POLICIES = 10_000;

/** Each line as what it is; what is no JSON as undefined, which counts as unreadable. */
export async function* auditOfText(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<unknown, void, undefined> {
  for await (const { text } of linesOf(chunks, MAX_LINE_BYTES)) {
    yield text === undefined ? undefined : parsed(text);
  }
}

/** The newest first, up to a limit; `isAll` says, at the end, whether there were no more. */
export function eventsOfServer(
  client: Client,
  query: Query,
  limit: number,
): { events: AsyncIterable<unknown>; isAll: () => boolean } {
  let read = 0;
  async function* events() {
    for await (const { event } of client.items(isAuditEntry, PATH, query, limit + 1)) {
      read += 1;
      if (read <= limit) yield event;
    }
  }
  return { events: events(), isAll: () => read <= limit };
}

/** Oldest first, as it was written: the server tells the newest first, and gaps are found by the order. */
export async function auditOfServer(
  client: Client,
  query: Query,
  limit: number,
): Promise<{ events: AuditEvent[]; isAll: boolean }> {
  const reading = eventsOfServer(client, query, limit);
  const events: AuditEvent[] = [];
  for await (const event of reading.events) events.push(event as AuditEvent);
  return { events: events.toReversed(), isAll: reading.isAll() };
}

/** Policies that the trail registers, wherever in it: those of what is looked at may have been registered before it. */
export async function policiesOf(client: Client): Promise<DefinedPolicy[]> {
  const policies = new Map<string, DefinedPolicy>();
  const query = { type: 'policy_registered' };
  for await (const { event } of client.items(isAuditEntry, PATH, query, MAX_POLICIES)) {
    const policy = policyOf(event['definition']);
    if (policy && policy.fingerprint === event['policy']) policies.set(policy.fingerprint, policy);
  }
  return [...policies.values()];
}

/** One that does not parse is found, and told, when its event is replayed. */
function policyOf(definition: unknown): DefinedPolicy | undefined {
  try {
    return parsePolicy(definition);
  } catch (error) {
    if (isConfigError(error)) return undefined;
    throw error;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Whoever replays counts it among what cannot be read.
    return undefined;
  }
}
