/** A stop, event by event: what a socket would bring at its own time is given by hand here. */
import { systemClock } from 'redrive/internal';
import { expect, it, onTestFinished } from 'vitest';
import { envelope } from './events.ts';
import type { CloudEvent } from './gen/cloudevents_pb.ts';
import { Outgoing } from './outgoing.ts';
import { Session } from './session.ts';
import { after, plainEvaluator } from './stage.test.ts';

/** A stream whose server reads at once, and whose events come when they are said. */
function streamOf() {
  const incoming = new Outgoing<CloudEvent>(() => undefined);
  const sent: string[] = [];
  const joined = Promise.withResolvers<void>();
  const session = new Session({
    url: 'grpc://by-hand',
    token: undefined,
    join: { tags: ['retry-timing'] },
    evaluator: plainEvaluator(),
    clock: systemClock,
    log: { debug: () => undefined, warn: () => undefined },
    onJoined: () => joined.resolve(),
    onOutcome: () => undefined,
    open: (outgoing) => {
      void (async () => {
        for await (const { type } of outgoing) sent.push(type);
        incoming.close();
      })();
      return { events: incoming, cut: () => incoming.close() };
    },
  });
  const say = (type: string, body: object) =>
    incoming.answer(envelope('id', type, JSON.stringify(body)));
  return { session, say, sent, joined: joined.promise };
}

it('answers a request that comes in the very moment of the stop', async () => {
  const { session, say, sent, joined } = streamOf();
  const over = session.run();
  onTestFinished(() => session.drain());
  say('CalculationMemberGreetEvent', { memberId: 'm', joinedLegalEntityId: 'l', success: true });
  await joined;
  session.drain();
  // Read after the stream was found idle, and before it is ended.
  say('EntityCriteriaCalculationRequest', {
    requestId: 'r',
    criteriaName: 'isRetryDelayElapsed',
    payload: { data: after },
  });
  expect(await over).toEqual({ type: 'drained' });
  expect(sent).toEqual(['CalculationMemberJoinEvent', 'EntityCriteriaCalculationResponse']);
});
