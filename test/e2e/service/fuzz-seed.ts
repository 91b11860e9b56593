/** Something for a fuzzer to find: messages that wait, and items in review. */
import { randomUUID } from 'node:crypto';

const ITEMS = 60;

export interface Seed {
  messageIds: string[];
  itemIds: number[];
  fingerprints: string[];
}

export async function plant(url: string): Promise<Seed> {
  const messageIds = Array.from({ length: ITEMS }, () => randomUUID());
  const items = messageIds.map((message_id, i) => ({
    message_id,
    destination: `http://127.0.0.1:9/nobody/${i % 3}`,
    payload: { order: i },
    // The one half waits, the other is used up and lies in review.
    ...(i % 2 === 0
      ? { due_at: '2099-01-01T00:00:00Z' }
      : { retry_count: 3, max_retries: 3, error_reason: `no route to shop ${i % 5}` }),
  }));
  const response = await fetch(`${url}/api/v1/retries`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ items }),
  });
  if (response.status !== 202) throw new Error(await response.text());
  const review = await listOf<{ id: number }>(`${url}/api/v1/review?limit=100`);
  const groups = await listOf<{ fingerprint: string }>(`${url}/api/v1/review/groups`);
  return {
    messageIds,
    itemIds: review.map(({ id }) => id),
    fingerprints: groups.map(({ fingerprint }) => fingerprint),
  };
}

type Schema = Record<string, unknown>;

interface Parameter {
  name: string;
  in: string;
  schema: Schema;
}

interface Document {
  paths: Record<string, Record<string, { parameters?: Parameter[] }>>;
}

/** The document as it is, but for ids in paths: every other one is one that exists. */
export function withSeed(document: Document, seed: Seed): Document {
  const known: Record<string, readonly unknown[]> = {
    message_id: seed.messageIds,
    id: seed.itemIds,
    fingerprint: seed.fingerprints,
  };
  const copy = structuredClone(document);
  for (const operation of Object.values(copy.paths).flatMap((path) => Object.values(path))) {
    for (const parameter of operation.parameters ?? []) {
      const values = parameter.in === 'path' ? known[parameter.name] : undefined;
      if (values) parameter.schema = { anyOf: [{ enum: values }, parameter.schema] };
    }
  }
  return copy;
}

async function listOf<T>(url: string): Promise<T[]> {
  return ((await (await fetch(url)).json()) as { items: T[] }).items;
}
