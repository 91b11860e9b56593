import { fromBinary, toBinary } from '@bufbuild/protobuf';
import pino from 'pino';
import { systemClock } from 'redrive/internal';
import { CriterionEvaluator } from '../../packages/server/src/criteria/evaluator.ts';
import { RecentAnswers } from '../../packages/server/src/criteria/recent.ts';
import { SettingsInForce } from '../../packages/server/src/criteria/settings.ts';
import { envelope } from '../../packages/server/src/cyoda/events.ts';
import {
  type CloudEvent,
  CloudEventSchema,
} from '../../packages/server/src/cyoda/gen/cloudevents_pb.ts';
import { Session } from '../../packages/server/src/cyoda/session.ts';
import { collectGarbage } from '../harness.ts';
import type { Case } from '../result.ts';
import { requestBody } from './grpc-load.ts';

const MOST_BYTES = 1024;
const STREAMS = 25;
const PER_STREAM = 4000;

export const grpcMemory: Case = {
  name: 'grpc-memory',
  about: 'memory that an evaluation takes while it waits in a stream',
  async run() {
    const bytes = toBinary(
      CloudEventSchema,
      envelope('bench', 'EntityCriteriaCalculationRequest', JSON.stringify(requestBody)),
    );
    const empty = await retained(bytes, 0);
    const full = await retained(bytes, PER_STREAM);
    const each = (full - empty) / (STREAMS * PER_STREAM);
    return {
      metric: 'bytes',
      redrive: each,
      peers: {},
      verdicts: [
        {
          target: `under ${MOST_BYTES} bytes`,
          measured: `${each.toFixed(0)} bytes, of a request of ${bytes.length} bytes`,
          met: each < MOST_BYTES,
        },
      ],
    };
  },
};

/** What streams hold that were not greeted, with so many requests waiting in each. */
async function retained(bytes: Uint8Array, perStream: number): Promise<number> {
  await collectGarbage('last-resort');
  const before = used();
  const streams = Array.from({ length: STREAMS }, () => waitingStream(bytes, perStream));
  await Promise.all(streams.map(({ read }) => read));
  await collectGarbage('last-resort');
  const held = used() - before;
  for (const { session } of streams) session.drain();
  await Promise.all(streams.map(({ over }) => over));
  return held;
}

function used(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function waitingStream(bytes: Uint8Array, count: number) {
  const read = Promise.withResolvers<void>();
  const cut = Promise.withResolvers<void>();
  const session = new Session({
    url: 'grpc://bench',
    token: undefined,
    join: { tags: ['bench'] },
    clock: systemClock,
    log: pino({ level: 'silent' }),
    evaluator: new CriterionEvaluator({
      settings: new SettingsInForce({}),
      clock: systemClock,
      counts: { evaluated: () => undefined, failed: () => undefined },
      recent: new RecentAnswers(),
      seed: () => 0,
      onError: () => undefined,
    }),
    onJoined: () => undefined,
    onOutcome: () => undefined,
    open: () => ({ events: events(), cut: () => cut.resolve() }),
  });
  return { session, read: read.promise, over: session.run() };

  async function* events(): AsyncGenerator<CloudEvent> {
    for (let n = 0; n < count; n++) yield fromBinary(CloudEventSchema, bytes);
    read.resolve();
    await cut.promise;
  }
}
