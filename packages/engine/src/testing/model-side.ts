import { definePolicy } from 'redrive';
import { accept, type Arrival, cancel, expedite } from '../moves.ts';
import type { ClaimFrom, Lease, OutboxMessage } from '../ports/schedule.ts';
import type { InboxItem } from '../ports/inbox.ts';
import type { Store } from '../ports/store.ts';
import type { Due, NewTask, Task } from '../task.ts';
import {
  at,
  broken,
  bytes,
  HOUR_MS,
  newTask,
  outboxMessage,
  rawItem,
  settlements,
  unreachable,
} from './fixtures.ts';
import {
  type Coming,
  type Draft,
  LANES,
  type Operation,
  TASKS,
  type Who,
} from './model-operations.ts';

const BYTES = 10;
const KEPT_LEASES = 12;
const ALL = 1000;

const policy = definePolicy({ maxAttempts: 20, strategy: 'fixed', base: '1h', jitter: 'none' });

/** One of the two stores that are compared. It answers in words that do not depend on its ids, nor on its clock unless both have the same one. */
export class Side {
  readonly #store: Store;
  readonly #isExact: boolean;
  #nowMs = 0;
  #steps = 0;
  /** The leases that were given last, newest first, as their workers know them. Nearly all of them are stale. */
  #leases: Task[] = [];

  constructor(store: Store, isExact: boolean) {
    this.#store = store;
    this.#isExact = isExact;
  }

  async apply(operation: Operation): Promise<unknown> {
    const store = this.#store;
    this.#steps += 1;
    this.#nowMs = Math.floor((await store.readState('no such state')).nowMs);
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
        const arrivals = operation.arrivals.map((one) => arrivalOf(one, this.#keyOf(one.who)));
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
        const olderThanMs = { done: ageMs, retried: ageMs, cancelled: ageMs, failed: ageMs };
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
        return taken.toSorted(byText).map(messageWords);
      }
      case 'append': {
        const raw = rawItem(`raw ${operation.who}`, { messageId: uuidOf(100 + operation.who) });
        const known = await store.items({ messageId: raw.messageId, limit: 1 });
        const isNew = known.length === 0 && operation.announced;
        return store.append([isNew ? { ...raw, outbox: outboxMessage(raw.messageId) } : raw]);
      }
      case 'wait':
        return undefined;
    }
  }

  /** Everything that can be seen of it. */
  async look(): Promise<unknown> {
    const store = this.#store;
    const { nowMs, documents } = await store.readState('');
    this.#nowMs = nowMs;
    const found = await Promise.all(
      Array.from({ length: TASKS }, (_, who) => store.get(identityOf(who))),
    );
    const tasks = found.filter((task) => task !== undefined);
    const identities = new Map(tasks.map((task) => [task.id, nameOf(task)]));
    const attempts = await Promise.all(tasks.map(({ id }) => store.attempts(id)));
    const items = await store.items({ limit: ALL });
    return {
      tasks: tasks.map((task) => this.#words(task)),
      attempts: attempts.map((list) => list.map((one) => ({ ...one, atMs: this.#when(one.atMs) }))),
      items: items.toSorted(byItem).map((item) => this.#itemWords(item, identities)),
      lanes: (await store.lanes({ limit: ALL })).map(({ lane, inMs }) => [
        lane,
        this.#howLong(inMs),
      ]),
      state: documents.map(({ key, value }) => [key, value]),
    };
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
        : tasks.toSorted(byName);
    this.#leases = [...ordered, ...this.#leases].slice(0, KEPT_LEASES);
    // What this claim leased may be lost at the end of its lease: a store may count that, or leave it to the next claim.
    const isCounted = operation.from === 'lost' && tasks.length > 0;
    const next = nextInMs.map((inMs) => (isCounted ? Math.min(inMs ?? Infinity, leaseMs) : inMs));
    return {
      tasks: ordered.map((task) => this.#words(task)),
      nextInMs: next.map((inMs) => this.#howLong(inMs)),
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

  #taskOf({ who, due, expires, attempt, recorded }: Draft): NewTask {
    const record = { attempt, failure: unreachable, durationMs: 30 };
    return newTask({
      ...identityOf(who),
      payload: bytes('0123456789'),
      attempt,
      due: this.#dueOf(due),
      ...(expires === undefined ? {} : { expiresAtMs: this.#atMs(expires) }),
      ...(recorded ? { record, failure: unreachable } : {}),
    });
  }

  #dueOf(due: Draft['due']): Due {
    return due === 'past' ? { atMs: this.#atMs(due) } : { inMs: due * HOUR_MS };
  }

  #atMs(span: Draft['due']): number {
    return this.#nowMs + (span === 'past' ? -1 : span) * HOUR_MS;
  }

  #words(task: Task): unknown {
    const { id: _, payload, dueAtMs, visibleAtMs, createdAtMs, ...rest } = task;
    return {
      ...rest,
      payload: textOf(payload),
      dueAtMs: this.#when(dueAtMs),
      visibleAtMs: this.#when(visibleAtMs),
      createdAtMs: this.#when(createdAtMs),
      expiresAtMs: this.#when(task.expiresAtMs),
      firstAtMs: this.#when(task.firstAtMs),
      finishedAtMs: this.#when(task.finishedAtMs),
    };
  }

  #itemWords(item: InboxItem, identities: ReadonlyMap<number, string>): unknown {
    const { id: _, taskId, payload, firstSeenMs, lastSeenMs, ...rest } = item;
    return {
      ...rest,
      task: taskId === undefined ? undefined : identities.get(taskId),
      payload: textOf(payload),
      firstSeenMs: this.#when(firstSeenMs),
      lastSeenMs: this.#when(lastSeenMs),
    };
  }

  #when(atMs: number | undefined): number | undefined {
    return atMs === undefined || this.#isExact
      ? atMs
      : Math.round((atMs - this.#nowMs) / HOUR_MS) + 0;
  }

  #howLong(inMs: number | undefined): number | undefined {
    return inMs === undefined || this.#isExact ? inMs : Math.round(inMs / HOUR_MS);
  }
}

type Key = Pick<Task, 'messageId' | 'destination'>;

function arrivalOf({ attempt, token, verdict, ours, permanent }: Coming, key: Key): Arrival {
  const task = newTask({
    ...key,
    payload: bytes('9876543210'),
    attempt,
    failure: permanent ? broken : unreachable,
    ...(token === undefined ? {} : { arrival: token }),
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

/** One word of each task at a time. */
function distinct<T extends Lease>(leases: readonly T[]): T[] {
  return leases.filter((one, i) => leases.findIndex(({ id }) => id === one.id) === i);
}

/** The first ones are one message for several queues. Their order is that of their message ids. */
function identityOf(who: number): Key {
  const message = who < LANES ? 0 : who;
  const destination = { kind: 'queue', address: `q${who % LANES}` };
  return { messageId: uuidOf(message), destination };
}

function laneName(lane: number): string {
  return `queue:q${lane}`;
}

function uuidOf(n: number): string {
  return `${n.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
}

function nameOf({ messageId, destination }: Key): string {
  return `${messageId} ${destination.address}`;
}

function messageWords({ destination, headers, payload }: OutboxMessage): unknown {
  return { destination, headers, text: textOf(payload) };
}

function textOf(payload: Uint8Array): string {
  return new TextDecoder().decode(payload);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function byName(a: Key, b: Key): number {
  return compare(nameOf(a), nameOf(b));
}

function byItem(a: InboxItem, b: InboxItem): number {
  return byName(a, b) || compare(a.reason, b.reason);
}

function byText(a: OutboxMessage, b: OutboxMessage): number {
  return compare(textOf(a.payload), textOf(b.payload));
}
