import { definePolicy } from 'redrive';
import { accept, type Arrival, cancel, expedite } from '../../model/moves.ts';
import type { ClaimFrom, Lease, OutboxMessage } from '../../ports/schedule.ts';
import type { Store } from '../../ports/store.ts';
import type { Due, NewTask, Task } from '../../model/task.ts';
import {
  at,
  broken,
  bytes,
  HOUR_MS,
  newTask,
  outboxMessage,
  settlements,
  unreachable,
} from '../fixtures.ts';
import { ALL, identityOf, type Key, laneName, LANES, type Who } from './model-identities.ts';
import { applyToInbox, rawId } from './model-inbox.ts';
import { look } from './model-look.ts';
import type { Coming, Draft, Operation } from './model-operations.ts';
import { compare, textOf, Words } from './model-words.ts';

const BYTES = 10;
const KEPT_LEASES = 12;

const policy = definePolicy({ maxAttempts: 20, strategy: 'fixed', base: '1h', jitter: 'none' });

/** One of the two stores that are compared. It answers in words that do not depend on its ids, nor on its clock unless both have the same one. */
export class Side {
  readonly #store: Store;
  readonly #isExact: boolean;
  readonly #words: Words;
  #steps = 0;
  /** The leases that were given last, newest first, as their workers know them. Nearly all of them are stale. */
  #leases: Task[] = [];

  constructor(store: Store, isExact: boolean) {
    this.#store = store;
    this.#isExact = isExact;
    this.#words = new Words(isExact);
  }

  async apply(operation: Operation): Promise<unknown> {
    const store = this.#store;
    this.#steps += 1;
    this.#words.nowMs = Math.floor((await store.readState('no such state')).nowMs);
    switch (operation.type) {
      case 'insert': {
        const ids = await store.insert(operation.tasks.map((one) => this.#taskOf(one)));
        return ids.map((id) => id !== undefined);
      }
      case 'submit': {
        const arrival: Arrival = { type: 'submit', task: this.#taskOf(operation.task), policy };
        return store.change([arrival.task], (task, nowMs) => accept(arrival, task, nowMs, 0));
      }
      case 'arrive': {
        const came = operation.arrivals.map((one) => arrivalOf(one, this.#keyOf(one.who)));
        // As in `insert`: in the order of their identities, unless order is promised.
        const isOrdered = operation.arrivals.some(({ key }) => key !== undefined);
        const arrivals = isOrdered
          ? came
          : came.toSorted((a, b) => this.#words.byName(a.task, b.task));
        const keys = arrivals.map(({ task }) => task);
        return store.change(keys, (task, nowMs, index) => accept(arrivals[index]!, task, nowMs, 0));
      }
      case 'cancel':
        return store.change([this.#keyOf(operation.who)], cancel);
      case 'expedite':
        return store.change([this.#keyOf(operation.who)], expedite);
      case 'claim':
        return this.#claim(operation);
      case 'settle': {
        const ends = operation.ends.flatMap(({ ago, how, soon }) => {
          const task = this.#leases[ago];
          const delay = soon ? { delayMs: 0 } : {};
          return task ? [{ ...settlements[how](task), ...delay }] : [];
        });
        const settled = distinct(ends);
        const answers = await store.settle(settled);
        // Most workers speak once. Some come back.
        if (this.#steps % 4 !== 0) this.#forget(settled);
        return answers;
      }
      case 'renew': {
        const held = operation.ago.flatMap((ago) => this.#leases[ago] ?? []);
        return store.renew(distinct(held.map(at)), operation.lease * HOUR_MS);
      }
      case 'abandon':
        return store.abandon(this.#leases[operation.ago]?.lease ?? 1);
      case 'prune': {
        const ageMs = operation.age * HOUR_MS;
        const olderThanMs = { done: ageMs, retried: ageMs, cancelled: ageMs };
        return store.prune({ olderThanMs, limit: ALL });
      }
      case 'state': {
        const key = `lane:${operation.key}`;
        const known = (await store.readState(key)).documents[0]?.version ?? 0;
        return store.writeState(
          key,
          { value: operation.value },
          operation.stale ? known + 7 : known,
        );
      }
      case 'outbox': {
        const taken = await store.takeOutbox(ALL, operation.lease * HOUR_MS);
        if (operation.drop) await store.dropOutbox(taken.map(({ id }) => id));
        const texts = taken.map((message) =>
          JSON.stringify(this.#words.plain(messageWords(message))),
        );
        return texts.toSorted();
      }
      case 'erase': {
        const { who } = operation;
        const isRaw = typeof who === 'object' && 'raw' in who;
        return store.erase(isRaw ? rawId(who.raw) : this.#keyOf(who).messageId, 'eva');
      }
      case 'wait':
        return undefined;
      case 'append':
      case 'act':
      case 'find':
      case 'freeze':
      case 'forget':
      case 'annotate':
      case 'prune items':
        return applyToInbox(store, this.#words, operation);
    }
  }

  /** Everything that can be seen of it. */
  look(): Promise<unknown> {
    return look(this.#store, this.#words);
  }

  async #claim(operation: Extract<Operation, { type: 'claim' }>): Promise<unknown> {
    const isDue = operation.from === 'due';
    const lanes = isDue ? operation.lanes : Array.from({ length: LANES }, (_, i) => i);
    const { limit } = operation;
    const from: ClaimFrom =
      operation.from === 'due'
        ? { kind: 'due', lanes: lanes.map((lane) => ({ lane: laneName(lane), limit })) }
        : operation.from === 'lost'
          ? { kind: 'lost', lanes: lanes.map(laneName), limit }
          : { kind: 'expired', limit };
    const leaseMs = operation.lease * HOUR_MS;
    const { tasks, nextInMs } = await this.#store.claim({
      from,
      lease: 2 ** 52 - this.#steps,
      leaseMs,
      maxBytes: isDue ? operation.tasksOfBytes * BYTES : ALL * BYTES,
    });
    // Lanes may come in any order, and what is earliest among lanes is told by each lane.
    const ordered =
      isDue || this.#isExact
        ? tasks.toSorted((a, b) => compare(a.lane, b.lane))
        : tasks.toSorted(this.#words.byName);
    this.#leases = [...ordered, ...this.#leases].slice(0, KEPT_LEASES);
    // What this claim leased may be lost at the end of its lease: a store may count that, or leave it to the next claim.
    const isCounted = operation.from === 'lost' && tasks.length > 0;
    const next = nextInMs.map((inMs) => (isCounted ? Math.min(inMs ?? Infinity, leaseMs) : inMs));
    return {
      tasks: ordered.map((task) => this.#words.task(task)),
      nextInMs: next.map((inMs) => this.#words.howLong(inMs)),
    };
  }

  #keyOf(who: Who): Key {
    if (typeof who === 'number') return identityOf(who);
    const { messageId, destination } = this.#leases[who.ago] ?? identityOf(who.ago);
    return { messageId, destination };
  }

  #forget(ended: readonly Lease[]): void {
    this.#leases = this.#leases.filter(
      ({ id, lease }) => !ended.some((one) => one.id === id && one.lease === lease),
    );
  }

  #taskOf({ who, due, expires, attempt, recorded, key, release }: Draft): NewTask {
    const record = { attempt, failure: unreachable, durationMs: 30 };
    return newTask({
      ...identityOf(who),
      payload: bytes('0123456789'),
      attempt,
      due: this.#dueOf(due),
      ...(expires === undefined ? {} : { expiresAtMs: this.#atMs(expires) }),
      ...(recorded ? { record, failure: unreachable } : {}),
      ...inLineOf(key),
      ...(release ? { onDead: 'release' as const } : {}),
    });
  }

  #dueOf(due: Draft['due']): Due {
    return due === 'past' ? { atMs: this.#atMs(due) } : { inMs: due * HOUR_MS };
  }

  #atMs(span: Draft['due']): number {
    return this.#words.nowMs + (span === 'past' ? -1 : span) * HOUR_MS;
  }
}

function arrivalOf({ attempt, token, verdict, ours, permanent, key }: Coming, to: Key): Arrival {
  const task = newTask({
    ...to,
    payload: bytes('9876543210'),
    attempt,
    failure: permanent ? broken : unreachable,
    ...(token === undefined ? {} : { arrival: token }),
    ...inLineOf(key),
  });
  return {
    type: 'failure',
    task,
    policy,
    review: ({ messageId }, { reason }) => outboxMessage(`${messageId} ${reason}`),
    ...(ours ? { generation: 0 } : {}),
    ...(verdict ? { verdict } : {}),
  };
}

function inLineOf(key: number | undefined): Partial<NewTask> {
  return key === undefined ? {} : { orderingKey: `k${key}`, blocked: true };
}

/** One word of each task at a time. */
function distinct<T extends Lease>(leases: readonly T[]): T[] {
  return leases.filter((one, i) => leases.findIndex(({ id }) => id === one.id) === i);
}

function messageWords({ destination, headers, payload }: OutboxMessage): unknown {
  return { destination, headers, text: textOf(payload) };
}
