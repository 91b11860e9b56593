/** Requests with an `Idempotency-Key`: what was done once is not done again, and is answered in the same way. */
import { fastifyIdempotency } from '@redrive/engine/fastify';
import type { IdempotencyRefusal } from 'redrive';
import { Type } from 'typebox';
import type { ServiceContext } from '../service-context.ts';
import { Problem, type ProblemCode } from './problem.ts';
import type { App } from './routes/route.ts';

/** So long a response is kept. */
export const KEPT_FOR = '24h';

/** What a request with a key may be answered beside what its route answers. */
export const ofKeys: readonly ProblemCode[] = [
  'IDEMPOTENCY_KEY_INVALID',
  'IDEMPOTENCY_CONFLICT',
  'IDEMPOTENCY_MISMATCH',
  'RESULT_NOT_STORED',
];

/** For the document: the plugin reads the header by itself. */
export const KeyHeader = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'Makes it safe to repeat the request: it is processed once for each key.',
    }),
  ),
});

/** Whether a route takes a key. `POST /retries` has its own: there the key is the identity of the message. A question that changes nothing needs none. */
export function takesKey(route: {
  method: string | string[];
  config?: { idempotency?: unknown } | undefined;
}): boolean {
  return [route.method].flat().includes('POST') && route.config?.idempotency !== false;
}

/** Before the routes: from then on they take keys. */
export async function addIdempotency(
  app: App,
  { idempotency: store }: Pick<ServiceContext, 'idempotency'>,
): Promise<void> {
  await app.register(fastifyIdempotency, {
    store,
    methods: ['POST'],
    expiresIn: KEPT_FOR,
    // The guard has run by then: whoever asks may do so.
    principal: ({ by }) => by,
    refuse: problemFor,
  });
}

function problemFor({ code, detail, headers, more, cause }: IdempotencyRefusal): Problem {
  switch (code) {
    case 'IDEMPOTENCY_KEY_INVALID':
    case 'IDEMPOTENCY_CONFLICT':
    case 'IDEMPOTENCY_MISMATCH':
    case 'RESULT_NOT_STORED':
      return new Problem(code, detail, { headers, more, cause });
    case 'IDEMPOTENCY_STORE_FAILED':
      return new Problem(
        'STORE_UNAVAILABLE',
        'The store cannot be reached now, so nothing was done. Ask again with the same Idempotency-Key.',
        { cause },
      );
    // The options above allow none of these but a record of somebody else.
    case 'IDEMPOTENCY_KEY_MISSING':
    case 'IDEMPOTENCY_BODY_TOO_LARGE':
    case 'IDEMPOTENCY_ABANDONED':
    case 'IDEMPOTENCY_RECORD_INVALID':
      return new Problem('INTERNAL', detail, { cause });
  }
}
