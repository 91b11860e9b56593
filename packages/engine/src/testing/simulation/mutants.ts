/** Ways to break the engine, each as a change of its source, and the first seed that finds it. The simulation must find them all. */
export interface Mutant {
  name: string;
  /** Below `packages/engine/src`. */
  file: string;
  /** Stands there exactly once. */
  from: string;
  to: string;
  seed: number;
}

export const mutants: readonly Mutant[] = [
  {
    name: 'settle before deliver',
    file: 'dispatch/executor.ts',
    from: 'entry.delivery = this.#deliver(entry);',
    to: `void this.#settler.settle({ id: task.id, lease: task.lease ?? 0, to: 'done' });
    entry.delivery = this.#deliver(entry);`,
    seed: 1,
  },
  {
    name: 'no fencing',
    file: 'model/moves.ts',
    from: "if (!task || task.lease !== by.lease || task.status !== 'pending') return",
    to: "if (!task || task.status !== 'pending') return",
    seed: 2,
  },
  {
    name: 'ack before commit',
    file: 'intake/consumer.ts',
    from: 'if (arrivals.length > 0) results = await this.#store(messages',
    to: `await this.#consumer?.ack(messages);
      if (arrivals.length > 0) results = await this.#store(messages`,
    seed: 2,
  },
  {
    name: 'ignore an arrival in delivery',
    file: 'model/moves.ts',
    from: 'if (task.lease !== undefined) return arriveInDelivery(arrival, task, nowMs, seed);',
    to: "if (task.lease !== undefined) return { result: 'duplicate' };",
    seed: 5,
  },
  {
    name: 'count only at settle',
    file: 'adapters/memory/store.ts',
    from: 'const claims = task.claims + 1;',
    to: 'const claims = task.claims;',
    seed: 8,
  },
  {
    name: 'start whatever was claimed',
    file: 'dispatch/dispatcher.ts',
    from: 'if (this.#host.clock.monotonic() + needMs <= entry.leaseUntil) this.#executor.start(entry);',
    to: 'if (needMs > 0) this.#executor.start(entry);',
    seed: 49,
  },
  {
    name: 'deliver before the new due time',
    file: 'model/moves.ts',
    from: "if (task.dueAtMs > nowMs) return 'NOT_DUE';",
    to: '',
    seed: 56,
  },
  {
    name: 'never give up on lost workers',
    file: 'model/moves.ts',
    from: "if (task.claims > limits.maxLostLeases) return 'WORKER_LOST';",
    to: '',
    seed: 3,
  },
  {
    name: 'a failed task without its item',
    file: 'model/moves.ts',
    from: "return { result: 'settled', task: failed, item: by.item, ...outbox, ...record };",
    to: "return { result: 'settled', task: failed, ...outbox, ...record };",
    seed: 1,
  },
  {
    name: 'replay what is closed',
    file: 'model/item-moves.ts',
    from: "if (item.state !== 'open') return { result: 'closed' };",
    to: '',
    seed: 7,
  },
  {
    name: 'nobody lets the line go on',
    file: 'adapters/memory/store.ts',
    from: 'this.#advance(moved.flatMap(({ before, row }) => [before, row]));',
    to: '',
    seed: 1,
  },
  {
    name: 'a replay does not wait for its turn',
    file: 'model/item-moves.ts',
    from: 'blocked: task.orderingKey !== undefined,',
    to: 'blocked: false,',
    seed: 514,
  },
  {
    name: 'a canary without steps',
    file: 'model/jobs.ts',
    from: 'size === undefined ? CHUNK : size - job.stepSent',
    to: 'CHUNK',
    seed: 14,
  },
  {
    name: 'a step passes while it is under way',
    file: 'model/jobs.ts',
    from: "if (tally.underway > 0) return { do: 'wait', ms: LOOK_MS, isLook: true };",
    to: '',
    seed: 6,
  },
  {
    name: 'send before the members are fixed',
    file: 'model/jobs.ts',
    from: 'if (job.before !== undefined) return',
    to: 'if (job.before !== undefined && job.total === 0) return',
    seed: 6,
  },
  {
    name: 'a job goes on whatever others write',
    file: 'adapters/memory/actions.ts',
    from: 'if (under && !documents.has(jobKey(under.job), under.version)) return undefined;',
    to: '',
    seed: 108,
  },
  {
    name: 'slots of a rate that somebody else has',
    file: 'lanes/lane-rate.ts',
    from: 'if (await this.#schedule.writeState(this.#key, state, this.#version)) {',
    to: `await this.#schedule.writeState(this.#key, state, this.#version);
      if (slots.length > 0) {`,
    seed: 11,
  },
  {
    name: 'an answer from before a clock was set sets it back',
    file: 'store-clock.ts',
    from: 'if (!isSame && sentAt < this.#sentAt) return;',
    to: '',
    seed: 1376,
  },
  {
    name: 'slots judged by a time from before a clock was set',
    file: 'lanes/lane-rate.ts',
    from: 'this.#time.saw(nowMs, sentAt);',
    to: 'void [nowMs, sentAt];',
    seed: 2310,
  },
  {
    name: 'a step passes by a count from within its observation',
    file: 'model/jobs.ts',
    from: 'const waitMs = untilMs - countedMs;',
    to: 'const waitMs = untilMs - nowMs;',
    seed: 864,
  },
  {
    name: 'what a handler did is not recorded',
    file: 'dispatch/once.ts',
    from: 'record: (key, owner, record) => keys.record(key, owner, record),',
    to: 'record: () => true,',
    seed: 11,
  },
  {
    name: 'a failure is recorded as done',
    file: 'dispatch/once.ts',
    from: "if (outcome.type !== 'done') throw new Error('The work is not done.');",
    to: '',
    seed: 4,
  },
  {
    name: 'a handler runs without its key',
    file: 'dispatch/once.ts',
    from: "whileRunning: 'conflict',",
    to: "whileRunning: 'conflict', whenStoreFails: 'run',",
    seed: 4,
  },
  {
    name: 'one key for all generations',
    file: 'model/task.ts',
    from: 'return edited === undefined ? messageId : `${messageId}.${edited}`;',
    to: 'return edited === undefined ? messageId : messageId;',
    seed: 4,
  },
];
