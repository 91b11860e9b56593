/** Who was told what: ids that were taken, ids that were refused, and requests that got no answer. */
import type { Answer, Reply } from './fuzz-wire.ts';

interface Taken {
  message_id?: unknown;
  status_of_request?: unknown;
  accepted?: { index: number; message_id: string }[];
  rejected?: { index: number }[];
}

export class Book {
  readonly taken = new Set<string>();
  readonly refused = new Set<string>();
  /** Requests to store something that may have been stored or not. */
  unanswered = 0;

  note(body: Uint8Array, reply: Reply): void {
    const asked = idsIn(body);
    if (typeof reply === 'string') this.unanswered += 1;
    else if (reply.status >= 400) for (const id of asked) this.#refuse(id);
    else this.#noteTaken(asked, reply);
  }

  #noteTaken(asked: readonly (string | undefined)[], { headers, body }: Answer): void {
    if (!headers.get('content-type')?.startsWith('application/json') || body.length === 0) return;
    const answer = Object(JSON.parse(body.toString())) as Taken;
    const { message_id: id, status_of_request: result, accepted, rejected } = answer;
    if (typeof id === 'string' && result !== undefined) this.taken.add(id);
    if (!Array.isArray(accepted) || !Array.isArray(rejected)) return;
    for (const { message_id: one } of accepted) this.taken.add(one);
    for (const { index } of rejected) this.#refuse(asked[index]);
  }

  #refuse(id: string | undefined): void {
    if (id !== undefined) this.refused.add(id);
  }
}

/** The ids that a body asks to store, by their place, as far as it can be read at all. */
function idsIn(body: Uint8Array): (string | undefined)[] {
  try {
    const value = Object(JSON.parse(Buffer.from(body).toString())) as { items?: unknown };
    const items: unknown[] = Array.isArray(value.items) ? value.items : [value];
    return items.map((item) => {
      const { message_id: id } = Object(item) as { message_id?: unknown };
      return typeof id === 'string' ? id.toLowerCase() : undefined;
    });
  } catch {
    return [];
  }
}
