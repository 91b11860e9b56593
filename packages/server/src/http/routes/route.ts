/** How a route is declared: who may use it, what it is for, what it answers. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { TSchema } from 'typebox';
import type { ServiceContext } from '../../service-context.ts';
import type { Needed } from '../guard.ts';
import type { ProblemCode } from '../problem.ts';

export type App = FastifyInstance<
  Server,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** Adds the routes of one resource. */
export type Routes = (app: App, context: ServiceContext) => void;

/** Who may use a route. */
export function forRole(role: Needed): { config: { role: Needed } } {
  return { config: { role } };
}

/** What stands in the document about a route. */
export function about(tag: string, summary: string, description?: string) {
  return { tags: [tag], summary, ...(description === undefined ? {} : { description }) };
}

/** Whatever one asks for. */
export const always: readonly ProblemCode[] = [
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'HOST_NOT_ALLOWED',
  'CROSS_ORIGIN',
  'RATE_LIMITED',
  'INTERNAL',
  'NOT_STARTED',
  'STOPPING',
  'STORE_UNAVAILABLE',
  'TOO_SLOW',
  'TOO_MANY_CONNECTIONS',
  'INVALID_REQUEST',
];

/** Whatever one sends. */
export const ofBodies: readonly ProblemCode[] = [
  'INVALID_JSON',
  'JSON_TOO_DEEP',
  'BODY_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'REQUEST_TIMEOUT',
];

type Good = Readonly<Record<number, TSchema>>;

/** What a route answers: the good ones by status, and the codes of its problems, which only the document is told of. */
interface Answers {
  response: Good;
  'x-problems': readonly ProblemCode[];
}

/** The problems that it has beside those that all have. */
export function answers(good: Good, ...codes: readonly ProblemCode[]): Answers {
  return { response: good, 'x-problems': [...always, ...codes] };
}

/** The same of a route that takes a body. */
export function answersToBody(good: Good, ...codes: readonly ProblemCode[]): Answers {
  return answers(good, ...ofBodies, ...codes);
}

/** Of a route that anybody may use, and that asks nobody. */
export function plainAnswers(good: Good): Answers {
  return {
    response: good,
    'x-problems': [
      'HOST_NOT_ALLOWED',
      'CROSS_ORIGIN',
      'INVALID_REQUEST',
      'RATE_LIMITED',
      'STOPPING',
      'INTERNAL',
    ],
  };
}

/** An answer that is not JSON. */
export function textAnswer(type: string, description: string): TSchema {
  return { description, content: { [type]: { schema: { type: 'string' } } } };
}
