import { about, answersToBody, type Routes } from './route.ts';
import { Problem } from '../problem.ts';
import type { FastifyRequest } from 'fastify';
import type { Around } from '../intake.ts';
import { Envelope, IdempotencyKey, RetryRequest, Taken } from '../schemas/retries.ts';
import { ref } from '../schemas/common.ts';
import { takeMany, takeOne } from '../taking.ts';
import { storeTime } from '../../notifications/store-time.ts';
import { checkOf, invalid, refuseList } from '../reading/validate.ts';

const checkEnvelope = checkOf(Envelope);
const checkKey = checkOf(IdempotencyKey);

/** Taking in: one message, or many. */
export const retryRoutes: Routes = (app, { engine, clock }) => {
  const time = storeTime(clock, () => engine.stats().clockSkewMs);
  app.post(
    '/api/v1/retries',
    {
      // Here the key is the identity of the message, and is stored in one commit with it.
      config: { role: 'operator', idempotency: false },
      schema: {
        ...about(
          'retries',
          'Take in a message, or many',
          'Answers after the commit. Without `retry_count` it is fresh work, due now, at `due_at`, or after `delay`. With it an execution has failed, and the message waits as its policy says. A known message is re-armed by a larger `retry_count` only. Of many, those with faults are `rejected` and the others go in.',
        ),
        headers: IdempotencyKey,
        body: RetryRequest,
        ...answersToBody(
          {
            200: ref('Receipt'),
            202: Taken,
          },
          'ALL_REJECTED',
          'INVALID_TASK',
          'NO_DESTINATION',
          'ADDRESS_REFUSED',
          'UNKNOWN_POLICY',
          'INVALID_PAYLOAD',
          'INVALID_ID',
          'PAYLOAD_TOO_LARGE',
          'IDEMPOTENCY_MISMATCH',
          'TASK_UNKNOWN',
          'INTAKE_FULL',
        ),
      },
      // Items are checked one by one, so that a faulty one does not spoil the others.
      validatorCompiler: () => () => true,
    },
    async (request, reply) => {
      const around = { ...aroundOf(request), nowMs: () => time.now() };
      const { body } = request;
      refuseList(body);
      if (isEnvelope(body)) {
        const faults = checkEnvelope(body, 'body');
        if (faults) throw invalid(faults);
        const receipts = await takeMany(engine, body.items, around);
        if (receipts.accepted.length === 0) {
          const { rejected } = receipts;
          throw new Problem('ALL_REJECTED', 'No item could be taken.', { more: { rejected } });
        }
        return reply.code(202).send(receipts);
      }
      const receipt = await takeOne(engine, body, around);
      return reply.code(receipt.status_of_request === 'duplicate' ? 200 : 202).send(receipt);
    },
  );
};

function isEnvelope(body: unknown): body is { items: unknown[] } {
  return typeof body === 'object' && body !== null && Object.hasOwn(body, 'items');
}

function aroundOf({ headers, traceparent }: FastifyRequest): Omit<Around, 'nowMs'> {
  const { 'idempotency-key': key } = headers;
  const faults = key === undefined ? undefined : checkKey({ 'idempotency-key': key }, 'header');
  if (faults) throw invalid(faults);
  return {
    ...(key === undefined ? {} : { key: String(key) }),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}
