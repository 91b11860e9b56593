import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import type { Body } from '@redrive/services/cyoda';
import { after, before, joined, plainEvaluator, stage } from './stage.test.ts';

const fieldsOf = (body: Body) => Object.keys(body).toSorted();

describe('the join', () => {
  it('names the tags, and no legal entity where none is set', async () => {
    const scene = await stage({ tags: ['retry', 'submission'] });
    const { join } = await joined(scene);
    expect(join['tags']).toEqual(['retry', 'submission']);
    expect(join).not.toHaveProperty('joinedLegalEntityId');
  });

  it('names the legal entity that is set', async () => {
    const { join } = await joined(await stage({ legalEntity: 'acme' }));
    expect(join['joinedLegalEntityId']).toBe('acme');
  });

  it.each([
    ['success is false', { success: false, error: { code: 'NO', message: 'not you' } }, /not you/],
    ['success is missing', { success: undefined }, /CYODA_TAGS/],
  ])('is refused where %s', async (_, greet, said) => {
    const { member, logged, counts } = await stage({}, { greet });
    member.start();
    const line = await logged('CYODA_JOIN_REFUSED');
    expect(line).toMatchObject({ level: 'error', message: expect.stringMatching(said) });
    expect(member.state).toMatchObject({
      status: 'waiting',
      trouble: { code: 'CYODA_JOIN_REFUSED' },
    });
    expect(counts).not.toHaveProperty('joined');
  });

  it('is given up where the server joins it to another legal entity', async () => {
    const { member, logged, server } = await stage(
      { legalEntity: 'acme' },
      { legalEntity: 'evil' },
    );
    member.start();
    const stream = await server.joined();
    expect((await logged('CYODA_WRONG_LEGAL_ENTITY')).message).toMatch(/'evil'.*'acme'/);
    await stream.untilGone();
    expect(server.faults).toEqual([]);
  });
});

describe('keep-alives', () => {
  it('are acknowledged with the id of the envelope, not with that of the body', async () => {
    const scene = await stage();
    const stream = await joined(scene);
    const ack = await stream.keepAlive();
    expect(ack).toMatchObject({ success: true, sourceEventId: expect.any(String) });
    expect(ack['sourceEventId']).not.toBe(stream.memberId);
    expect(scene.server.faults).toEqual([]);
  });

  it('are acknowledged before the greeting too', async () => {
    const { server, member } = await stage({}, { greet: 'none' });
    member.start();
    const stream = await server.joined();
    expect(await stream.keepAlive()).toMatchObject({ success: true });
  });

  it('are acknowledged before answers that wait', async () => {
    const count = 2000;
    const scene = await stage();
    const stream = await joined(scene);
    const order: string[] = [];
    stream.onEvent((type) => order.push(type));
    // The server does not read, so answers pile up on the member's side.
    stream.http2.pause();
    const answers = Array.from({ length: count }, () =>
      stream.criterion('isRetryDelayElapsed', after),
    );
    await scene.counted('request matched', count);
    const ack = stream.keepAlive();
    // Once this one is refused, the keep-alive before it was read.
    const refused = stream.criterion('nope', after);
    await scene.counted('request refused', 1);
    stream.http2.resume();
    await Promise.all([...answers, refused, ack]);
    // What the member had sent already cannot be overtaken: its buffer and the window of the stream.
    expect(order.indexOf('EventAckResponse')).toBeLessThan(count / 2);
    expect(scene.server.faults).toEqual([]);
  });

  it('never lead to an answer to an acknowledgement', async () => {
    const scene = await stage();
    const stream = await joined(scene);
    const events: string[] = [];
    stream.onEvent((type) => events.push(type));
    stream.send('EventAckResponse', JSON.stringify({ id: 'x', sourceEventId: 'y', success: true }));
    stream.send('EventAckResponse', 'not even JSON');
    await stream.keepAlive();
    expect(events).toEqual(['EventAckResponse']);
    expect(scene.server.faults).toEqual([]);
  });
});

describe('answers', () => {
  it('go to every request, though all of them carry the same id', async () => {
    const scene = await stage();
    const stream = await joined(scene);
    const fields = { id: 'the-member', entityId: 'e1' };
    const answers = await Promise.all(
      [after, before, after].map((entity) =>
        stream.criterion('isRetryDelayElapsed', entity, { fields }),
      ),
    );
    expect(answers.map(({ matches }) => matches)).toEqual([true, false, true]);
    expect(scene.server.faults).toEqual([]);
  });

  it.each(['text', 'bytes'] as const)('are the same for a body that came as %s', async (as) => {
    const stream = await joined(await stage());
    const entity = { ...after, name: 'Jürgen 🙂' };
    const answer = await stream.criterion('isRetryDelayElapsed', entity, { as });
    expect(answer).toMatchObject({
      success: true,
      matches: true,
      reason: 'BACKOFF_ELAPSED: 60000 of 60000 ms elapsed, due at 2025-06-01T12:01:00.000Z',
    });
    expect(fieldsOf(answer)).toEqual([
      'entityId',
      'id',
      'matches',
      'reason',
      'requestId',
      'success',
    ]);
  });

  it('carry warnings as texts', async () => {
    const { retryDelaySeconds: _, ...entity } = before;
    const scene = await stage();
    const stream = await joined(scene);
    const answer = await stream.criterion('isRetryDelayElapsed', entity);
    expect(answer['warnings']).toEqual([expect.stringMatching(/^DEFAULT_USED: /)]);
    expect(scene.server.faults).toEqual([]);
  });

  it('say of an evaluation that failed that it succeeded and does not match', async () => {
    const scene = await stage();
    const stream = await joined(scene);
    const entity = { ...after, lastAttemptTime: 'yesterday' };
    const answer = await stream.criterion('isRetryDelayElapsed', entity);
    expect(answer).toMatchObject({ success: true, matches: false });
    expect(answer['reason']).toMatch(/^INVALID_TIME: /);
    expect(answer).not.toHaveProperty('error');
    expect(scene.counts['request failed']).toBe(1);
  });

  it('say DATA_UNAVAILABLE where no payload was attached', async () => {
    const stream = await joined(await stage());
    const answer = await stream.criterion('isRetryDelayElapsed', undefined);
    expect(answer).toMatchObject({ success: true, matches: false });
    expect(answer['reason']).toMatch(/^DATA_UNAVAILABLE: /);
    const available = await stream.criterion('hasRetriesAvailable', undefined);
    expect(available).toMatchObject({ success: true, matches: false });
  });

  it('fail only an unknown name, an unreadable request and a processor', async () => {
    const scene = await stage();
    const stream = await joined(scene);
    const unknown = await stream.criterion('isRetryDelayElapsd', after);
    expect(unknown).toMatchObject({
      success: false,
      matches: false,
      error: { code: 'CRITERION_UNKNOWN', retryable: false },
    });
    expect(unknown['reason']).toContain("Did you mean 'isRetryDelayElapsed'?");
    expect(await stream.schedule('nextRetryTim', after)).toMatchObject({
      success: false,
      error: { code: 'FUNCTION_UNKNOWN', message: expect.stringContaining('Did you mean') },
    });
    const named = { processorName: 'enrich' };
    expect(await stream.ask('EntityProcessorCalculationRequest', named, after)).toMatchObject({
      success: false,
      error: { code: 'PROCESSOR_NOT_SUPPORTED' },
    });
    expect(scene.counts['request refused']).toBe(3);
    expect(scene.server.faults).toEqual([]);
  });

  it('keep their reason within 2 KiB, whatever the request says', async () => {
    const scene = await stage();
    const stream = await joined(scene);
    const { reason } = await stream.criterion('ä'.repeat(10_000), after);
    expect(Buffer.byteLength(String(reason))).toBeLessThanOrEqual(2048);
    await stream.criterion('isRetryDelayElapsed', { lastAttemptTime: 'ä'.repeat(10_000) });
    expect(scene.server.faults).toEqual([]);
  });

  it('do not end the process where the evaluator throws', async () => {
    const evaluator = {
      ...plainEvaluator(),
      evaluate: () => {
        throw new Error('a bug');
      },
      nextRetryTime: () => {
        throw new Error('a bug');
      },
    };
    const stream = await joined(await stage({ evaluator }));
    expect(await stream.criterion('isRetryDelayElapsed', after)).toMatchObject({
      success: true,
      matches: false,
      reason: 'CALCULATION_ERROR: The evaluation failed: a bug',
    });
    expect(await stream.schedule('nextRetryTime', after)).toMatchObject({
      success: true,
      result: { fireAfterMs: 60_000 },
    });
  });
});

describe('nextRetryTime', () => {
  it('answers the due time as an integer of epoch ms', async () => {
    const scene = await stage();
    const stream = await joined(scene);
    const answer = await stream.schedule('nextRetryTime', before);
    expect(answer).toMatchObject({
      success: true,
      resultKind: 'Schedule',
      result: { fireAt: Date.parse('2025-06-01T12:01:00Z') },
    });
    expect(Object.keys(answer['result'] as object)).toEqual(['fireAt']);
    expect(scene.server.faults).toEqual([]);
  });

  it.each([undefined, {}, { lastAttemptTime: 5 }])(
    'answers the default delay with a warning for %j',
    async (entity) => {
      const scene = await stage();
      const answer = await (await joined(scene)).schedule('nextRetryTime', entity);
      expect(answer).toMatchObject({ success: true, result: { fireAfterMs: 60_000 } });
      expect(Object.keys(answer['result'] as object)).toEqual(['fireAfterMs']);
      expect(answer['warnings']).not.toEqual([]);
      expect(scene.server.faults).toEqual([]);
    },
  );
});

describe('parameters', () => {
  const evaluator = plainEvaluator(undefined, {
    enableJitter: false,
    sets: { nightly: { defaultRetryDelaySeconds: 3600 } },
  });
  const entity = { lastAttemptTime: before.lastAttemptTime };
  const fireAt = async (parameters: unknown) => {
    const stream = await joined(await stage({ evaluator }));
    const { result, warnings } = await stream.schedule('nextRetryTime', entity, {
      fields: { parameters },
    });
    const { fireAt: at } = result as { fireAt: number };
    return { seconds: (at - Date.parse(entity.lastAttemptTime)) / 1000, warnings };
  };

  it.each([
    ['retry-delay-check', 60],
    ['nightly', 3600],
    ['{"context":"nightly"}', 3600],
    ['{"defaultRetryDelaySeconds":5}', 5],
    ['{not JSON', 60],
    [undefined, 60],
    ['', 60],
  ])('%j is the context, or an object of options', async (parameters, seconds) => {
    expect((await fireAt(parameters)).seconds).toBe(seconds);
  });

  it('with faults are left out with a warning', async () => {
    const { seconds, warnings } = await fireAt('{"defaultRetryDelaySecond":5}');
    expect(seconds).toBe(60);
    expect(warnings).toContainEqual(expect.stringMatching(/^PARAMETERS_IGNORED: .*Did you mean/));
  });
});

describe('time limits', () => {
  it('count the time that a request has waited', async () => {
    const clock = virtualClock();
    const { server, member } = await stage({ clock }, { greet: 'none' });
    member.start();
    const stream = await server.joined();
    const slow = stream.criterion('isRetryDelayElapsed', after);
    // Read in order: once it is acknowledged, the request before it has come.
    await stream.keepAlive();
    await clock.advance('3s');
    const fast = stream.criterion('isRetryDelayElapsed', after);
    await stream.keepAlive();
    const { memberId } = stream;
    const body = { id: 'g', memberId, joinedLegalEntityId: 'acme', success: true };
    stream.send('CalculationMemberGreetEvent', JSON.stringify(body));
    expect(await slow).toMatchObject({ success: true, matches: false });
    expect((await slow)['reason']).toMatch(/^EVALUATION_TIMEOUT: /);
    expect(await fast).toMatchObject({ matches: true });
  });

  it('cut a stream whose answers the server does not read, and say so', async () => {
    const clock = virtualClock();
    const scene = await stage({ clock });
    const stream = await joined(scene);
    stream.http2.pause();
    const asked = Array.from({ length: 12_000 }, () =>
      stream.criterion('isRetryDelayElapsed', after).catch(() => undefined),
    );
    await scene.counted('request matched', 4096);
    // Until it reads no more: whatever is on its way has come.
    let seen = -1;
    while (seen !== scene.counts['request matched']) {
      seen = scene.counts['request matched'] ?? 0;
      for (let n = 0; n < 50; n++) await new Promise(setImmediate);
    }
    await clock.advance('30s');
    const { message } = await scene.logged('CYODA_SILENT');
    expect(message).toMatch(/read no answer for 30 s, and \d+ wait for it/);
    await Promise.all(asked);
  });

  it('cut a stream on which the server was silent for 30 s, and join over a new connection', async () => {
    const clock = virtualClock();
    const scene = await stage({ clock });
    const { server, logged } = scene;
    const first = await joined(scene);
    await clock.advance('20s');
    await first.keepAlive();
    await clock.advance('29s');
    expect(first.isGone).toBe(false);
    await clock.advance('1s');
    await first.untilGone();
    await logged('CYODA_SILENT');
    await clock.advance('1s');
    const second = await server.joined();
    expect(second.http2.session).not.toBe(first.http2.session);
    expect(server.pings).toBe(0);
  });
});
