import type {
  CreatedNotification,
  FailureAnswer,
  Notifications,
  SuccessAnswer,
} from '@redrive/notifications';
import type { Static } from 'typebox';
import {
  attemptView,
  deliveryViews,
  failureAnswerView,
  failureOf,
  newNotificationOf,
  recordView,
  successAnswerView,
  successOf,
} from '../../notifications/wire.ts';
import { Batch } from '../notification-batch.ts';
import { Problem } from '../problem.ts';
import { cursorOf, pairOf } from '../reading/cursor.ts';
import type { WireFault } from '../reading/faults.ts';
import {
  checkFailure,
  checkFailureItem,
  checkNotification,
  checkSuccess,
  checkSuccessItem,
} from '../reading/notification-checks.ts';
import { checkOf, compileValidator, invalid, refuseList } from '../reading/validate.ts';
import { listOf, ref } from '../schemas/common.ts';
import {
  CreatedMany,
  FailureBody,
  FailureDecisions,
  type FailureItem,
  Many,
  NotificationFilter,
  type NotificationItem,
  NotificationPath,
  ShownStatus,
  StatusQuery,
  SuccessBody,
  SuccessDecisions,
  type SuccessItem,
} from '../schemas/notifications.ts';
import { Type } from 'typebox';
import { about, answers, answersToBody, forRole, type Routes } from './route.ts';

const checkMany = checkOf(Many);

const ofReports = [
  'NOTIFICATIONS_OFF',
  'NOTIFICATION_UNKNOWN',
  'DEVICE_UNKNOWN',
  'TOO_MANY_DEVICES',
  'INVALID_REPORT',
  'INVALID_RECORD',
  'RECORD_TOO_LARGE',
  'RECORD_CONTENDED',
  'RECORD_UNREADABLE',
] as const;
const ofCreation = [
  'NOTIFICATIONS_OFF',
  'INVALID_NOTIFICATION',
  'UNKNOWN_PRIORITY',
  'INVALID_QUIET_HOURS',
  'NOTIFICATION_EXISTS',
  'IDEMPOTENCY_KEY_REUSED',
  'INVALID_RECORD',
  'RECORD_TOO_LARGE',
  'RECORD_UNREADABLE',
  'ALL_REJECTED',
] as const;

/** What a report is safe to be sent twice by: its notification, device and attempt, or the key of its body. */
const keyed = { role: 'operator', idempotency: false } as const;

const Created = Type.Unsafe<unknown>({
  type: 'object',
  description: 'One: the notification. Many: what became of each.',
  additionalProperties: true,
  'x-forms': [ref('Notification'), CreatedMany],
});

/** Notifications, and what becomes of their deliveries. */
export const notificationRoutes: Routes = (app, { notifications }) => {
  const service = () => {
    if (notifications) return notifications;
    throw new Problem(
      'NOTIFICATIONS_OFF',
      'The service of notifications is off. Set NOTIFICATIONS=on and start again.',
    );
  };

  app.post(
    '/api/v1/notifications',
    {
      config: keyed,
      schema: {
        ...about(
          'notifications',
          'Create a notification, or many',
          'Answers after the commit: 201, or 200 where the `idempotency_key` is known. Many stand in `items`; those with faults are `rejected` and the others go in.',
        ),
        body: Type.Unsafe<unknown>({
          type: 'object',
          description: 'A notification, or `{items: [...]}`.',
          'x-forms': [ref('NotificationItem'), Many],
        }),
        ...answersToBody({ 200: Created, 201: ref('Notification') }, ...ofCreation),
      },
      // Items are checked one by one, so that a faulty one does not spoil the others.
      validatorCompiler: () => () => true,
    },
    async ({ body }, reply) => {
      refuseList(body);
      if (isMany(body)) return reply.code(200).send(await createMany(service(), itemsOf(body)));
      const given = checked(checkNotification(service(), body), body);
      const { isNew, record } = await service().create(
        newNotificationOf(given as Static<typeof NotificationItem>),
      );
      return reply.code(isNew ? 201 : 200).send(recordView(record));
    },
  );

  app.post(
    '/api/v1/notifications/:id/failures',
    {
      config: keyed,
      schema: {
        ...about(
          'notifications',
          'Report a failed delivery',
          'Answers with the decision after it is durable. The same attempt reported again is a `duplicate`, and finishes what the first report left undone.',
        ),
        params: NotificationPath,
        body: FailureBody,
        ...answersToBody({ 200: ref('FailureDecision') }, ...ofReports),
      },
      validatorCompiler: allButBody,
    },
    async ({ params, body }) => {
      const given = checked(checkFailure(service(), body), body);
      return failureAnswerView(await service().reportFailure(failureOf(params.id, given)));
    },
  );

  app.post(
    '/api/v1/notifications/:id/successes',
    {
      config: keyed,
      schema: {
        ...about(
          'notifications',
          'Report a delivery that worked',
          'Ends the retries to this device.',
        ),
        params: NotificationPath,
        body: SuccessBody,
        ...answersToBody({ 200: ref('SuccessDecision') }, ...ofReports),
      },
      validatorCompiler: allButBody,
    },
    async ({ params, body }) => {
      const given = checked(checkSuccess(service(), body), body);
      return successAnswerView(await service().reportSuccess(successOf(params.id, given)));
    },
  );

  app.post(
    '/api/v1/notifications/failures',
    {
      config: keyed,
      schema: {
        ...about(
          'notifications',
          'Report many failed deliveries',
          'Each with its `notification_id`. Those with faults are `rejected`, the others are decided.',
        ),
        body: Many,
        ...answersToBody({ 200: FailureDecisions }, 'NOTIFICATIONS_OFF'),
      },
      validatorCompiler: allButBody,
    },
    async ({ body }) => {
      const batch = new Batch<Static<typeof FailureItem>>(itemsOf(body), (item) =>
        checkFailureItem(service(), item),
      );
      const answered = await service().reportFailures(
        batch.good.map(({ item }) => failureOf(item.notification_id, item)),
      );
      return batch.answer(answered, (answer: FailureAnswer, item) => ({
        ...subjectOf(item),
        ...failureAnswerView(answer),
      }));
    },
  );

  app.post(
    '/api/v1/notifications/successes',
    {
      config: keyed,
      schema: {
        ...about('notifications', 'Report many deliveries that worked'),
        body: Many,
        ...answersToBody({ 200: SuccessDecisions }, 'NOTIFICATIONS_OFF'),
      },
      validatorCompiler: allButBody,
    },
    async ({ body }) => {
      const batch = new Batch<Static<typeof SuccessItem>>(itemsOf(body), (item) =>
        checkSuccessItem(service(), item),
      );
      const answered = await service().reportSuccesses(
        batch.good.map(({ item }) => successOf(item.notification_id, item)),
      );
      return batch.answer(answered, (answer: SuccessAnswer, item) => ({
        ...subjectOf(item),
        ...successAnswerView(answer),
      }));
    },
  );

  app.get(
    '/api/v1/notifications',
    {
      ...forRole('reader'),
      schema: {
        ...about('notifications', 'List notifications', 'The newest first.'),
        querystring: NotificationFilter,
        ...answers(
          { 200: listOf(ref('Notification'), 'Notifications.') },
          'NOTIFICATIONS_OFF',
          'INVALID_CURSOR',
        ),
      },
    },
    async ({ query }) => {
      const { limit = 50, status, priority, user_id: userId } = query;
      const place = pairOf('notifications', query.cursor);
      const records = await service().list({
        limit: limit + 1,
        ...(status === undefined ? {} : { status }),
        ...(priority === undefined ? {} : { priority }),
        ...(userId === undefined ? {} : { userId }),
        ...(place ? { before: { createdAtMs: place[0], id: place[1] } } : {}),
      });
      const shown = records.slice(0, limit);
      const last = records.length > limit ? shown.at(-1) : undefined;
      return {
        items: shown.map(recordView),
        next_cursor: last ? cursorOf('notifications', last.createdAtMs, last.id) : null,
      };
    },
  );

  app.get(
    '/api/v1/notifications/:id',
    {
      ...forRole('reader'),
      schema: {
        ...about('notifications', 'Show a notification', 'With how it stands with each device.'),
        params: NotificationPath,
        ...answers(
          { 200: ref('NotificationDetail') },
          'NOTIFICATIONS_OFF',
          'NOTIFICATION_UNKNOWN',
          'RECORD_UNREADABLE',
        ),
      },
    },
    async ({ params }) => {
      const record = await find(service(), params.id);
      return { ...recordView(record), deliveries: deliveryViews(record) };
    },
  );

  app.get(
    '/api/v1/notifications/:id/status',
    {
      ...forRole('reader'),
      schema: {
        ...about(
          'notifications',
          'Show the status of a notification',
          'With its attempts, by device and number.',
        ),
        params: NotificationPath,
        querystring: StatusQuery,
        ...answers(
          { 200: ShownStatus },
          'NOTIFICATIONS_OFF',
          'NOTIFICATION_UNKNOWN',
          'INVALID_CURSOR',
          'RECORD_UNREADABLE',
        ),
      },
    },
    async ({ params, query }) => {
      const { limit = 100 } = query;
      const record = await find(service(), params.id);
      const place = pairOf('attempts', query.cursor);
      const after = place && { attemptNumber: place[0], deviceId: place[1] };
      const attempts = await service().attempts(record.id, {
        limit: limit + 1,
        ...(after ? { after } : {}),
      });
      const shown = attempts.slice(0, limit);
      const last = attempts.length > limit ? shown.at(-1) : undefined;
      return {
        id: record.id,
        status: record.status,
        retry_count: record.retryCount,
        deliveries: deliveryViews(record),
        attempts: shown.map(attemptView),
        next_cursor: last ? cursorOf('attempts', last.attemptNumber, last.deviceId) : null,
      };
    },
  );
};

async function find(service: Notifications, id: string) {
  const record = await service.get(id);
  if (record) return record;
  throw new Problem('NOTIFICATION_UNKNOWN', `There is no notification ${JSON.stringify(id)}.`);
}

/** The body of a report is checked by its handler, which knows the service. */
const allButBody: typeof compileValidator = (part) =>
  part.httpPart === 'body' ? () => true : compileValidator(part);

function checked<Body>(faults: readonly WireFault[] | undefined, body: Body): Body {
  if (faults) throw invalid(faults);
  return body;
}

function isMany(body: unknown): body is object {
  return typeof body === 'object' && body !== null && Object.hasOwn(body, 'items');
}

function itemsOf(body: object): unknown[] {
  refuseList(body);
  const faults = checkMany(body, 'body');
  if (faults) throw invalid(faults);
  return (body as Static<typeof Many>).items;
}

function subjectOf({ notification_id, device_id }: Static<typeof SuccessItem>) {
  return { notification_id, device_id };
}

async function createMany(
  service: Notifications,
  items: readonly unknown[],
): Promise<Static<typeof CreatedMany>> {
  const batch = new Batch<Static<typeof NotificationItem>>(items, (item) =>
    checkNotification(service, item),
  );
  const created = await service.createMany(batch.good.map(({ item }) => newNotificationOf(item)));
  const answered = batch.answer(created, ({ isNew, record }: CreatedNotification) => ({
    id: record.id,
    result: isNew ? ('created' as const) : ('existing' as const),
    status: record.status,
  }));
  if (answered.accepted.length > 0) return answered;
  const { rejected } = answered;
  throw new Problem('ALL_REJECTED', 'No item could be taken.', { more: { rejected } });
}
