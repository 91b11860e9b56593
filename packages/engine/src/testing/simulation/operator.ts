import type { MemoryStore } from '../../adapters/memory/store.ts';
import type { Engine } from '../../engine.ts';
import type { EngineInbox } from '../../inbox/engine-inbox.ts';
import type { ReplayOptions, Selection } from '../../inbox/selection.ts';
import type { World } from './world.ts';

/** Somebody at the inbox, who does whatever one can do there, often what others do at the same time. */
export class Operator {
  readonly #world: World;
  readonly #store: MemoryStore;

  constructor(world: World, store: MemoryStore) {
    this.#world = world;
    this.#store = store;
  }

  /** Nobody waits for the answer: it may be an error, or never come. */
  act({ inbox }: Engine): void {
    const world = this.#world;
    const by = world.pick(['ann', 'bob']);
    const items = [...this.#store.peek().items.values()];
    const id = items.length > 0 ? world.pick(items).id : 1;
    const job = world.between(1, 3);
    const acts: (() => Promise<unknown>)[] = [
      () => inbox.replay(id, { by }),
      () => inbox.replay(id, { by, payload: payloadOf(id) }),
      () => inbox.replay(id, { by, to: 'other' }),
      () => inbox.edit(id, { by, headers: { 'x-edited': '1' } }),
      () => inbox.resolve(id, { by }),
      () => inbox.discard(id, { by }),
      () => inbox.restore(id, { by }),
      () => inbox.erase(id, { by }),
      () => this.#replayAll(inbox, id),
      () => this.#replayAll(inbox, id),
      () => this.#replayAll(inbox, id),
      () => inbox.discardAll({ lane: 'handler:job' }, { by }),
      () => inbox.pauseJob(job, { by }),
      () => inbox.resumeJob(job, { by }),
      () => inbox.cancelJob(job, { by }),
    ];
    world.pick(acts)().catch(nothing);
  }

  /** Sends something of the idempotent handler again, most often changed. */
  editPaying({ inbox }: Engine): void {
    const items = [...this.#store.peek().items.values()].filter(
      ({ lane, state }) => lane === 'handler:pay' && state === 'open',
    );
    if (items.length === 0) return;
    const { id } = this.#world.pick(items);
    const payload = this.#world.chance(0.7) ? { payload: payloadOf(id) } : {};
    inbox.replay(id, { by: 'ann', ...payload }).catch(nothing);
  }

  /** A bulk replay that observes each of its steps for a while. */
  replayInSteps({ inbox }: Engine): void {
    const observeMs = this.#world.between(200, 2000);
    const selection = { lane: this.#world.pick(['queue:work1', 'queue:work2']) };
    inbox.replayAll(selection, { canary: [1, 1, 1], observeMs }).catch(nothing);
  }

  /** So that all comes to rest: jobs go on, and what holds up others is put aside. */
  clear({ inbox }: Engine): void {
    const { tasks, openItems } = this.#store.peek();
    for (const job of [1, 2, 3, 4, 5, 6]) inbox.resumeJob(job).catch(nothing);
    for (const { id, status, orderingKey } of tasks) {
      const item = status === 'failed' && orderingKey !== undefined ? openItems.get(id) : undefined;
      if (item !== undefined) inbox.discard(item).catch(nothing);
    }
  }

  #replayAll(inbox: EngineInbox, id: number): Promise<unknown> {
    const world = this.#world;
    const selection = world.pick<Selection>([
      { all: true },
      { lane: 'handler:job' },
      { text: 'made up' },
      { ids: [id, id + 1] },
    ]);
    const options: ReplayOptions = {
      ...(world.chance(0.5) ? { canary: [1, 2] } : {}),
      ...(world.chance(0.3) ? { perSecond: world.between(1, 20) } : {}),
      ...(world.chance(0.3) ? { observeMs: world.between(0, 2000) } : {}),
      ...(world.chance(0.1) ? { to: 'other' } : {}),
    };
    const begun = inbox.replayAll(selection, options);
    if (world.chance(0.6)) {
      // Somebody changes his mind.
      const think = world.between(0, 300);
      const change = world.pick(['pauseJob', 'cancelJob', 'pauseJob'] as const);
      begun.then((job) => {
        world.at(think, always, () => void inbox[change](job.id).catch(nothing));
      }, nothing);
    }
    return begun;
  }
}

/** As the workshop takes it, and told apart from what was there. */
function payloadOf(id: number): object {
  return { n: id, behaviour: 'works', failures: 0, takesMs: 1 };
}

const always = { isAlive: true };

function nothing(): void {}
