import type { OperatorFacts } from '../audit/audit-facts.ts';
import type { By, EngineInbox } from './engine-inbox.ts';
import { type Erased, notReached, type Surroundings } from '../erase/erasure.ts';
import { EngineError, isEngineError } from '../errors.ts';
import { replayedId } from '../model/item-moves.ts';
import { JobActions, type JobActionsParts } from './job-actions.ts';
import type {
  Edit,
  Group,
  GroupQuery,
  Inbox,
  InboxItem,
  ItemAction,
  ItemPage,
  ItemQuery,
} from '../ports/inbox.ts';
import { refusal, unknownItem } from './refusal.ts';
import {
  byOf,
  type Changes,
  checkedBy,
  checkedChanges,
  checkedFilter,
  checkedNote,
  checkedNumber,
  checkedPlace,
  checkedText,
  checkNames,
  filterNames,
} from './selection.ts';
import { checkedLimit } from '../intake/submission.ts';
import { laneOf } from '../model/task.ts';

interface ItemActionsParts extends JobActionsParts {
  maxPayloadBytes: number;
  /** Whether anybody keeps what is told of actions. */
  isAudited: boolean;
  /** Erases the events of a message; false: the sink cannot. */
  eraseEvents: (messageId: string) => Promise<boolean>;
  surroundings: Surroundings;
}

const MAX_SAME = 10_000;

/** Where operators stand: what they do to one item, and to many. See the interface `EngineInbox` for what each method promises. */
export class ItemActions extends JobActions implements EngineInbox {
  readonly #parts: ItemActionsParts;

  constructor(parts: ItemActionsParts) {
    super(parts);
    this.#parts = parts;
  }

  async item(id: number): Promise<InboxItem | undefined> {
    return (await this.#parts.store()).item(checkedNumber(id));
  }

  async items(asked: Omit<ItemQuery, 'limit'> & { limit?: number } = {}): Promise<ItemPage> {
    checkNames(asked, [...filterNames, 'before', 'limit'], 'A query of items');
    const { before, limit = 100, ...filter } = asked as Partial<ItemQuery>;
    const query = { ...checkedFilter(filter), limit: checkedLimit(limit) };
    const page = before === undefined ? {} : { before: checkedPlace(before, 'before') };
    return (await this.#parts.store()).items({ ...query, ...page });
  }

  async attempts(taskId: number): ReturnType<Inbox['attempts']> {
    return (await this.#parts.store()).attempts(checkedNumber(taskId, 'taskId'));
  }

  async groups(asked: Partial<GroupQuery> = {}): Promise<Group[]> {
    const names = ['fingerprint', 'lane', 'all', 'before', 'limit'];
    checkNames(asked, names, 'A query of groups');
    const { limit = 100, ...query } = asked;
    const { fingerprint, lane, before } = query;
    if (fingerprint !== undefined) checkedText(fingerprint, 'fingerprint');
    if (lane !== undefined) checkedText(lane, 'lane');
    if (before !== undefined) {
      checkedPlace(before.lastSeenMs, 'before.lastSeenMs');
      checkedText(before.fingerprint, 'before.fingerprint');
    }
    return (await this.#parts.store()).groups({ ...query, limit: checkedLimit(limit) });
  }

  async annotate(
    fingerprint: string,
    given: { note?: string; owner?: string } & By,
  ): Promise<void> {
    const { by, ...notes } = Object(given) as typeof given;
    const who = byOf(by);
    const checked = checkedNote(notes);
    const store = await this.#parts.store();
    if (!(await store.annotate(checkedText(fingerprint, 'fingerprint'), checked))) {
      throw new EngineError('ITEM_UNKNOWN', `There is no group '${fingerprint}'.`);
    }
    this.#parts.acted('annotate', { group: fingerprint, ...who, details: checked });
  }

  async replay(id: number, options: Changes & By = {}): Promise<void> {
    checkNames(options, ['payload', 'headers', 'to', 'by'], 'A replay');
    const { by, ...changes } = options;
    const isChanged = Object.values(changes).some((one) => one !== undefined);
    const edit = isChanged ? { edit: await this.#checkedEdit(id, changes, by) } : {};
    await this.#act(id, { type: 'replay', ...byOf(by), ...edit });
  }

  async edit(
    id: number,
    changes: (Changes & By) | undefined,
    options: By = {},
  ): Promise<InboxItem> {
    const { by = checkedBy(options).by, ...rest } = changes ?? {};
    const edit = changes && (await this.#checkedEdit(id, rest, by));
    await this.#act(id, { type: 'edit', ...byOf(by), edit });
    return (await this.item(id))!;
  }

  async resolve(id: number, options: By = {}): Promise<void> {
    await this.#act(id, { type: 'resolve', ...checkedBy(options) });
  }

  async discard(id: number, options: By = {}): Promise<void> {
    await this.#act(id, { type: 'discard', ...checkedBy(options) });
  }

  async restore(id: number, options: By = {}): Promise<void> {
    await this.#act(id, { type: 'restore', ...checkedBy(options) });
  }

  async erase(id: number, options: By = {}): Promise<Erased> {
    const { by } = checkedBy(options);
    const item = await this.#known(id);
    const { messageId, taskId, lane, fingerprint } = item;
    const store = await this.#parts.store();
    const results = new Map([[messageId, await store.erase(messageId, by)]]);
    if (taskId === undefined) {
      // What could not be read goes under a new id when it is replayed. From now on it cannot be any more.
      const { items } = await store.items({ messageId, limit: MAX_SAME });
      for (const same of items) {
        const other = replayedId(same);
        results.set(other, await store.erase(other, by));
      }
    }
    // Also where a replay of it is still on its way: something is gone already.
    if (results.get(messageId) !== 'busy') {
      this.#parts.acted('erase', { item: id, messageId, lane, group: fingerprint, ...byOf(by) });
    }
    const gone = [...results].flatMap(([one, result]) => (result === 'busy' ? [] : [one]));
    // After the store: whatever was told of the message before its tasks were over is written, or waits, by now.
    const isTrailKept = !(await this.#eraseEvents(gone));
    if (gone.length < results.size) {
      throw new EngineError(
        'ITEM_BUSY',
        `The message of item ${id} is on its way again. Cancel it, or wait until it is settled; then erase it once more.`,
      );
    }
    const [group] = await store.groups({ fingerprint, all: true, limit: 1 });
    const ofStore = (await store.scrub?.()) ?? [];
    const outcome = { item, note: group?.note, isTrailKept, store, ofStore };
    return { notReached: notReached(this.#parts.surroundings, outcome) };
  }

  /** False: the sink cannot. */
  async #eraseEvents(messageIds: readonly string[]): Promise<boolean> {
    try {
      let isReached = true;
      for (const id of messageIds) isReached = (await this.#parts.eraseEvents(id)) && isReached;
      return isReached;
    } catch (error) {
      if (isEngineError(error)) throw error;
      throw new EngineError(
        'AUDIT_NOT_ERASED',
        'The message is erased in the store, but the sink of the audit trail failed to erase its events. Erase the item once more when the sink works again.',
        { cause: error },
      );
    }
  }

  async #act(id: number, action: ItemAction): Promise<void> {
    const store = await this.#parts.store();
    checkedNumber(id);
    // Before: what is done must not fail by the look at it.
    const item = this.#parts.isAudited ? await store.item(id) : undefined;
    const [result] = await store.act([id], action);
    if (result !== 'done') throw refusal(id, result!, action, await store.item(id));
    this.#parts.acted(action.type, factsOf(id, item, action));
  }

  async #known(id: number): Promise<InboxItem> {
    const item = await this.item(id);
    if (!item) throw unknownItem(id);
    return item;
  }

  /** Held to what a submit to that destination is held to. */
  async #checkedEdit(id: number, changes: Changes, by: string | undefined) {
    const edit = checkedChanges(changes, this.#parts.maxPayloadBytes, by);
    const item = await this.#known(id);
    const headers = edit.headers ?? item.context?.headers;
    const destination = edit.destination ?? item.destination;
    if (edit.destination) this.#parts.sentTo(laneOf(edit.destination));
    if (destination.kind !== 'source') {
      await this.#parts.submitter.check(destination, changes.payload, {
        ...item.context,
        ...(headers ? { headers } : {}),
      });
    }
    return edit;
  }
}

function factsOf(id: number, item: InboxItem | undefined, action: ItemAction): OperatorFacts {
  const { messageId, lane, fingerprint: group } = item ?? {};
  const { by, edit } = { by: undefined, edit: undefined, ...action };
  const isTaken = action.type === 'edit' && !edit;
  const details = edit ? changesOf(edit) : isTaken ? { changes: 'none any more' } : undefined;
  return { item: id, messageId, lane, group, by, details };
}

/** Neither payloads nor the values of headers. */
function changesOf({ payload, headers, destination: to }: Edit): OperatorFacts['details'] {
  return { payload, headers: headers && Object.keys(headers), to };
}
