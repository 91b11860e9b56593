import type {
  Changes as EngineChanges,
  Engine,
  InboxItem,
  ItemFilter as Filter,
} from '@redrive/engine';
import type { Static } from 'typebox';
import { Type } from 'typebox';
import { cursorOf, pairOf, placeOf } from '../reading/cursor.ts';
import { destinationFaults, readDestination } from '../reading/destination.ts';
import type { WireFault } from '../reading/faults.ts';
import { KEPT_FOR } from '../idempotency.ts';
import { readBase64 } from '../reading/payload.ts';
import { Problem } from '../problem.ts';
import { listOf, ref } from '../schemas/common.ts';
import {
  Changes,
  Edit,
  GroupFilter,
  GroupPath,
  ItemFilter,
  ItemPath,
  type selection,
  Nothing,
  Notes,
} from '../schemas/review.ts';
import { bodyWith, refuseIf } from '../reading/validate.ts';
import { groupView, itemDetail, itemView } from '../views.ts';
import { about, answers, answersToBody, type App, forRole, type Routes } from './route.ts';
import { laneIn } from './tasks.ts';

/** What never worked, and what one does about it. */
export const reviewRoutes: Routes = (app, { engine, settings }) => {
  const { inbox } = engine;

  app.get(
    '/api/v1/review',
    {
      ...forRole('reader'),
      schema: {
        ...about(
          'review',
          'List what is in review',
          'The newest first, the open ones unless told.',
        ),
        querystring: ItemFilter,
        ...answers({ 200: listOf(ref('Item'), 'Items.') }, 'INVALID_CURSOR', 'INVALID_FILTER'),
      },
    },
    async ({ query }) => {
      const { state = 'open', limit = 50, cursor } = query;
      const before = placeOf('items', cursor);
      const { items, next } = await inbox.items({
        ...filterIn(query),
        ...(state === 'all' ? {} : { state }),
        ...(before === undefined ? {} : { before }),
        limit,
      });
      return {
        items: items.map(itemView),
        next_cursor: next === undefined ? null : cursorOf('items', next),
      };
    },
  );

  app.get(
    '/api/v1/review/groups',
    {
      ...forRole('reader'),
      schema: {
        ...about('review', 'List causes', 'Items of one cause are one group; the last seen first.'),
        querystring: GroupFilter,
        ...answers({ 200: listOf(ref('Group'), 'Groups.') }, 'INVALID_CURSOR', 'INVALID_FILTER'),
      },
    },
    async ({ query }) => {
      const { all, limit = 100 } = query;
      const lane = laneIn(query);
      const place = pairOf('groups', query.cursor);
      const groups = await inbox.groups({
        ...(lane === undefined ? {} : { lane }),
        ...(all === undefined ? {} : { all }),
        ...(place ? { before: { lastSeenMs: place[0], fingerprint: place[1] } } : {}),
        limit: limit + 1,
      });
      const shown = groups.slice(0, limit);
      const last = groups.length > limit ? shown.at(-1) : undefined;
      return {
        items: shown.map(groupView),
        next_cursor: last ? cursorOf('groups', last.lastSeenMs, last.fingerprint) : null,
      };
    },
  );

  app.patch(
    '/api/v1/review/groups/:fingerprint',
    {
      ...forRole('operator'),
      schema: {
        ...about('review', 'Write a note on a cause, or who sees to it'),
        params: GroupPath,
        body: Notes,
        ...answersToBody({ 200: ref('Group') }, 'ITEM_UNKNOWN', 'INVALID_FILTER'),
      },
    },
    async ({ params, body, by }) => {
      const { fingerprint } = params;
      const { note, owner } = body;
      await inbox.annotate(fingerprint, {
        ...(note === undefined ? {} : { note }),
        ...(owner === undefined ? {} : { owner }),
        by,
      });
      const [group] = await inbox.groups({ fingerprint, all: true, limit: 1 });
      if (group) return groupView(group);
      throw new Problem('ITEM_UNKNOWN', `There is no group '${fingerprint}'.`);
    },
  );

  app.get(
    '/api/v1/review/:id',
    {
      ...forRole('reader'),
      schema: {
        ...about('review', 'Show an item', 'With its payload, its executions, and its edit.'),
        params: ItemPath,
        ...answers({ 200: ref('ItemDetail') }, 'ITEM_UNKNOWN'),
      },
    },
    async ({ params }) => detailOf(engine, params.id),
  );

  app.post(
    '/api/v1/review/:id/replay',
    {
      ...forRole('operator'),
      schema: {
        ...about('review', 'Send an item again', 'As it is, by its edit, or with other changes.'),
        params: ItemPath,
        body: Type.Optional(Changes),
        ...answersToBody({ 202: ref('ItemDetail') }, ...ofEdits),
      },
      validatorCompiler: bodyWith(changesFaults),
    },
    async ({ params, body, by }, reply) => {
      refuseIf(changesFaults(body ?? {}));
      await inbox.replay(params.id, { ...changesIn(body ?? {}), by });
      return reply.code(202).send(await detailOf(engine, params.id));
    },
  );

  app.put(
    '/api/v1/review/:id/edit',
    {
      ...forRole('operator'),
      schema: {
        ...about('review', 'Change an item', 'For its next replay. The original is kept.'),
        params: ItemPath,
        body: Edit,
        ...answersToBody({ 200: ref('ItemDetail') }, ...ofEdits),
      },
      validatorCompiler: bodyWith(changesFaults),
    },
    async ({ params, body, by }) => {
      refuseIf(changesFaults(body));
      await inbox.edit(params.id, { ...changesIn(body), by });
      return detailOf(engine, params.id);
    },
  );

  app.delete(
    '/api/v1/review/:id/edit',
    {
      ...forRole('operator'),
      schema: {
        ...about('review', 'Take an edit back'),
        params: ItemPath,
        ...answers({ 200: ref('ItemDetail') }, 'ITEM_UNKNOWN', 'ITEM_CLOSED'),
      },
    },
    async ({ params, by }) => {
      await inbox.edit(params.id, undefined, { by });
      return detailOf(engine, params.id);
    },
  );

  addAction(app, engine, 'resolve', 'Close an item that was dealt with elsewhere');
  addAction(app, engine, 'discard', 'Close an item that is not wanted');
  addAction(app, engine, 'restore', 'Open again what was resolved or discarded');

  app.post(
    '/api/v1/review/:id/erase',
    {
      ...forRole('admin'),
      schema: {
        ...about(
          'review',
          'Take everything personal out of a message for good, wherever it is',
          'Reaches the store and the audit trail. `not_reached` lists where something may still be.',
        ),
        params: ItemPath,
        body: Type.Optional(Nothing),
        ...answersToBody(
          { 200: ref('ErasedItem') },
          'ITEM_UNKNOWN',
          'ITEM_BUSY',
          'AUDIT_NOT_ERASED',
        ),
      },
    },
    async ({ params, by }) => {
      const { notReached } = await inbox.erase(params.id, { by });
      // The service has an inbox hook of its own. Without a webhook it tells nobody but the log.
      const hasHook = settings.inboxWebhookUrl !== undefined;
      const places = notReached.filter(({ what }) => hasHook || what !== 'entry_hook');
      return { ...(await detailOf(engine, params.id)), not_reached: [...places, keptResponses] };
    },
  );
};

/** They are found by their keys alone, which only their senders know. */
const keptResponses = {
  what: 'idempotency_keys',
  why: `Responses to requests with an Idempotency-Key are kept for ${KEPT_FOR}, and some show the item as it was.`,
  todo: 'Wait until they have expired. They are deleted by themselves.',
};

const ofEdits = [
  'ITEM_UNKNOWN',
  'ITEM_CLOSED',
  'ITEM_CONFLICT',
  'NO_DESTINATION',
  'ADDRESS_REFUSED',
  'INVALID_FILTER',
  'INVALID_TASK',
  'INVALID_PAYLOAD',
  'PAYLOAD_TOO_LARGE',
] as const;

function addAction(
  app: App,
  engine: Pick<Engine, 'inbox'>,
  action: 'resolve' | 'discard' | 'restore',
  summary: string,
): void {
  app.post(
    `/api/v1/review/:id/${action}`,
    {
      ...forRole('operator'),
      schema: {
        ...about('review', summary),
        params: ItemPath,
        body: Type.Optional(Nothing),
        ...answersToBody({ 200: ref('ItemDetail') }, 'ITEM_UNKNOWN', 'ITEM_CLOSED'),
      },
    },
    async ({ params, by }) => {
      await engine.inbox[action](params.id, { by });
      return detailOf(engine, params.id);
    },
  );
}

async function detailOf({ inbox }: Pick<Engine, 'inbox'>, id: number) {
  const item: InboxItem | undefined = await inbox.item(id);
  if (!item) throw new Problem('ITEM_UNKNOWN', `There is no item ${id} in review.`);
  const attempts = item.taskId === undefined ? [] : await inbox.attempts(item.taskId);
  return itemDetail(item, attempts);
}

type Filters = NonNullable<Static<(typeof selection)['filter']>>;

/** The engine's filter; the state is the caller's business. */
export function filterIn(filters: Filters): Omit<Filter, 'state' | 'ids'> {
  const { reason, group, text, from, to, key, message_id: messageId } = filters;
  const lane = laneIn(filters);
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(lane === undefined ? {} : { lane }),
    ...(group === undefined ? {} : { fingerprint: group }),
    ...(filters.class === undefined ? {} : { class: filters.class }),
    ...(text === undefined ? {} : { text }),
    ...(from === undefined ? {} : { fromMs: Date.parse(from) }),
    ...(to === undefined ? {} : { toMs: Date.parse(to) }),
    ...(key === undefined ? {} : { orderingKey: key }),
    ...(messageId === undefined ? {} : { messageId }),
  };
}

/** Also of a filter whose fields hold anything. */
export function filterFaults(filter: unknown): WireFault[] {
  const { lane, queue } = Object(filter) as { lane?: unknown; queue?: unknown };
  if (lane === undefined || queue === undefined) return [];
  const message = 'Either lane or queue, and not both.';
  return [{ in: 'body', path: '/filter/queue', code: 'INVALID_VALUE', message }];
}

/** What an operator changes. */
function changesIn(given: Static<typeof Changes>): EngineChanges {
  const isJson = Object.hasOwn(given, 'payload');
  const { payload, payload_base64: base64, headers, destination } = given;
  const bytes = base64 === undefined ? undefined : readBase64(base64);
  const read = destination === undefined ? undefined : readDestination(destination);
  return {
    ...(isJson ? { payload } : bytes ? { payload: bytes } : {}),
    ...(headers === undefined ? {} : { headers }),
    ...(read && 'destination' in read ? { to: read.destination } : {}),
  };
}

/** Also of changes whose fields hold anything. */
function changesFaults(given: Partial<Record<string, unknown>>): WireFault[] {
  const { payload_base64: base64, destination } = given;
  const faults: WireFault[] = [];
  if (base64 !== undefined && Object.hasOwn(given, 'payload')) {
    const message = 'Either payload or payload_base64, and not both.';
    faults.push({ in: 'body', path: '/payload', code: 'INVALID_VALUE', message });
  }
  if (base64 !== undefined && (typeof base64 !== 'string' || !readBase64(base64))) {
    const message = 'It is not base64.';
    faults.push({ in: 'body', path: '/payload_base64', code: 'INVALID_VALUE', message });
  }
  return destination === undefined ? faults : [...faults, ...destinationFaults(destination)];
}
