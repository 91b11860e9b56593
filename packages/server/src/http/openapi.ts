/** The document of the API, made from the schemas that requests are checked by. */
import swagger from '@fastify/swagger';
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import { type TSchema, Type } from 'typebox';
import type { ServiceContext } from '../service-context.ts';
import { KeyHeader, ofKeys, takesKey } from './idempotency.ts';
import { operationIds } from './operation-ids.ts';
import { type ProblemCode, statuses } from './problem.ts';
import { RetryMessageItem } from './retry-message-item.ts';
import type { App } from './routes/route.ts';
import { Job } from './schemas/bulk.ts';
import { Problem } from './schemas/common.ts';
import { AnswerList, DelayAnswer, LimitAnswer } from './schemas/criteria.ts';
import { Acted, Receipt, Receipts, ShownItem, Task, TaskDetail } from './schemas/retries.ts';
import {
  FailureDecision,
  NotificationDetail,
  NotificationItem,
  ShownNotification,
  SuccessDecision,
} from './schemas/notifications.ts';
import { Decision, Provider } from './schemas/routing.ts';
import { ErasedItem, Group, Item, ItemDetail } from './schemas/review.ts';
import { Lane } from './schemas/service.ts';

const description = `Durable retries over HTTP: messages that are delivered until they work, or lie in review.

Names are \`snake_case\`; a policy is the one exception, and is written as in TypeScript. Times are ISO 8601 in UTC. Lists are
\`{items, next_cursor}\`. What goes wrong is \`application/problem+json\` with a \`code\`.`;

const tags = [
  { name: 'retries', description: 'Messages in the schedule.' },
  { name: 'review', description: 'What never worked, and what one does about it.' },
  { name: 'bulk', description: 'The same done to many items of review.' },
  { name: 'lanes', description: 'What waits where, and whether it may go.' },
  { name: 'policies', description: 'How messages are retried.' },
  { name: 'criteria', description: 'Questions of a workflow engine: may this entity be retried?' },
  { name: 'route', description: 'Which provider comes next, and how providers do.' },
  { name: 'notifications', description: 'Notifications whose failed deliveries are retried.' },
  { name: 'audit', description: 'What was decided, and what operators did.' },
  { name: 'events', description: 'What happens, as it happens.' },
  { name: 'service', description: 'Health, numbers, and this document.' },
];

/** Before the routes: from then on they are listened to. */
export async function addDocument(
  app: App,
  version: string,
  { settings }: Pick<ServiceContext, 'settings'>,
): Promise<void> {
  for (const schema of [
    Problem,
    ShownItem,
    RetryMessageItem,
    Receipt,
    Receipts,
    Task,
    TaskDetail,
    Acted,
    Item,
    ItemDetail,
    ErasedItem,
    Group,
    Job,
    Lane,
    DelayAnswer,
    LimitAnswer,
    AnswerList,
    Decision,
    Provider,
    NotificationItem,
    ShownNotification,
    NotificationDetail,
    FailureDecision,
    SuccessDecision,
  ]) {
    app.addSchema(schema);
  }
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Redrive', version, description, license: { name: 'Apache-2.0' } },
      tags,
      components: {
        securitySchemes: {
          token: {
            type: 'http',
            scheme: 'bearer',
            description: 'One of `REDRIVE_TOKENS`. Without any, everybody on this machine may ask.',
          },
        },
      },
      security: settings.tokens.length > 0 ? [{ token: [] }] : [],
    },
    refResolver: {
      buildLocalReference: ({ $id }, _, __, i) => (typeof $id === 'string' ? $id : `def-${i}`),
    },
    transformObject: (made) =>
      'openapiObject' in made ? withOptionalBodies(made.openapiObject) : made.swaggerObject,
    transform: ({ schema, url, route }) => ({ schema: shown(schema, route), url }),
  });
}

/** The whole document, once the app is ready. */
export function documentOf(app: FastifyInstance): object {
  return app.swagger();
}

/** What is for the document only. */
function shown(schema: FastifySchema | undefined, route: RouteOptions) {
  const { config, method, url } = route;
  const isKeyed = takesKey(route);
  const { 'x-problems': codes = [], response, ...rest } = (schema ?? {}) as Shown;
  const role = config?.role ?? 'admin';
  const good = Object.entries(response ?? {}).map(([status, answer]) => [status, formsOf(answer)]);
  return {
    ...rest,
    ...(isKeyed ? { headers: KeyHeader } : {}),
    operationId: operationId(String(method), url),
    'x-role': role,
    ...(rest.body && Type.IsOptional(rest.body) ? { [BODY_OPTIONAL]: true } : {}),
    ...(role === 'open' ? { security: [] } : {}),
    response: {
      ...problemsOf(isKeyed ? [...codes, ...ofKeys] : codes),
      ...(Object.fromEntries(good) as Record<string, unknown>),
    },
  };
}

interface Shown extends Omit<FastifySchema, 'body'> {
  body?: TSchema;
  response?: Record<string, object>;
  'x-problems'?: readonly ProblemCode[];
}

/** Problems by their status. */
function problemsOf(codes: readonly ProblemCode[]): Record<string, unknown> {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of new Set(codes)) {
    byStatus.set(statuses[code], [...(byStatus.get(statuses[code]) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, of]) => [
      status,
      {
        description: of.map((code) => `\`${code}\``).join(', '),
        content: { 'application/problem+json': { schema: { $ref: 'Problem#' } } },
      },
    ]),
  );
}

const BODY_OPTIONAL = 'x-body-optional';

interface Operation {
  [BODY_OPTIONAL]?: true;
  requestBody?: { required: boolean };
}

/** The plugin takes every body for needed. */
function withOptionalBodies<T extends object>(document: T): T {
  const { paths = {} } = document as { paths?: Record<string, Record<string, Operation>> };
  for (const operation of Object.values(paths).flatMap((path) => Object.values(path))) {
    if (!operation[BODY_OPTIONAL]) continue;
    delete operation[BODY_OPTIONAL];
    if (operation.requestBody) operation.requestBody.required = false;
  }
  return document;
}

/** An answer of several forms has one serializer, but is shown as what it is. */
function formsOf(answer: object): object {
  if (!('x-forms' in answer)) return answer;
  const { 'x-forms': forms, description: text } = answer as {
    'x-forms': unknown;
    description?: string;
  };
  return { description: text, oneOf: forms };
}

/** A route without a name of its own gets one that no test lets pass. */
function operationId(method: string, url: string): string {
  return operationIds[`${method} ${url}`] ?? `${method} ${url}`;
}
