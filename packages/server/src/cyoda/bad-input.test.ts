import { describe, expect, it } from 'vitest';
import { after, joined, stage } from './stage.test.ts';

const CRITERIA = 'EntityCriteriaCalculationRequest';

describe('a request that is not as it should be', () => {
  it.each([
    ['no JSON', '{"id":"m","requestId":"r1","entityId":"e1","payload":{'],
    ['no object', '["requestId", "r1", {"requestId":"r1","entityId":"e1"}]'],
    ['lone bytes', '{"requestId":"r1","entityId":"e1"}\u0000'],
  ])('is refused by its requestId where it is %s', async (_, text) => {
    const scene = await stage();
    const stream = await joined(scene);
    const answer = stream.expectAnswer(CRITERIA, 'r1', 'e1');
    stream.send(CRITERIA, text, 'bytes');
    expect(await answer).toMatchObject({ success: false, error: { code: 'INVALID_JSON' } });
    expect(await stream.criterion('isRetryDelayElapsed', after)).toMatchObject({ matches: true });
    expect(scene.server.faults).toEqual([]);
  });

  it.each([
    ['empty', '', 'INVALID_JSON'],
    ['without a requestId', '{"criteriaName":"isRetryDelayElapsed"}', 'INVALID_REQUEST'],
    ['with a number as requestId', '{"requestId":5}', 'INVALID_REQUEST'],
    ['with an endless requestId', `{"requestId":"${'x'.repeat(2000)}"}`, 'INVALID_REQUEST'],
  ])('is acknowledged as failed where it is %s', async (_, text, code) => {
    const scene = await stage();
    const stream = await joined(scene);
    const ack = await stream.acknowledged(CRITERIA, text);
    expect(ack).toMatchObject({ success: false, error: { code, retryable: false } });
    expect(await stream.criterion('isRetryDelayElapsed', after)).toMatchObject({ matches: true });
    expect(
      scene.lines.some(({ level, fields }) => level === 'warn' && fields['code'] === code),
    ).toBe(true);
    expect(scene.server.faults).toEqual([]);
  });

  it.each([
    [
      'numbers as texts',
      { ...after, retryDelaySeconds: '60', attemptCount: '1' },
      true,
      /^BACKOFF_ELAPSED/,
    ],
    [
      'a time without zone',
      { ...after, lastAttemptTime: '2025-06-01T12:00:00' },
      true,
      /^BACKOFF_ELAPSED/,
    ],
    [
      'a time out of range',
      { ...after, lastAttemptTime: '2025-13-41T99:00:00Z' },
      false,
      /^INVALID_TIME/,
    ],
    [
      'a year that no date holds',
      { ...after, lastAttemptTime: '+999999-01-01T00:00:00Z' },
      false,
      /^INVALID_TIME/,
    ],
    ['a list', [after], false, /^DATA_UNAVAILABLE/],
    ['a text', 'entity', false, /^DATA_UNAVAILABLE/],
    ['null', null, false, /^DATA_UNAVAILABLE/],
    [
      'prototype keys',
      JSON.parse(
        '{"__proto__":{"lastAttemptTime":"2025-06-01T12:00:00Z"},"constructor":{"prototype":{"x":1}}}',
      ) as unknown,
      false,
      /^DATA_UNAVAILABLE/,
    ],
  ])('has an answer where the entity is %s', async (_, entity, matches, reason) => {
    const scene = await stage();
    const stream = await joined(scene);
    const answer = await stream.criterion('isRetryDelayElapsed', entity);
    expect(answer).toMatchObject({ success: true, matches });
    expect(answer['reason']).toMatch(reason);
    expect(scene.server.faults).toEqual([]);
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
  });

  it('has an answer where it is nested a hundred thousand levels deep', async () => {
    const scene = await stage();
    const stream = await joined(scene);
    const answer = stream.expectAnswer(CRITERIA, 'r1');
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const text = `{"requestId":"r1","criteriaName":"isRetryDelayElapsed","payload":{"data":${deep}}}`;
    stream.send(CRITERIA, text);
    expect(await answer).toMatchObject({ success: true, matches: false });
    expect(await stream.keepAlive()).toMatchObject({ success: true });
  });

  it.each(['text', 'bytes'] as const)('may hold an entity of 10 MB as %s', async (as) => {
    const scene = await stage();
    const stream = await joined(scene);
    const entity = { ...after, blob: 'x'.repeat(10_000_000) };
    const answer = await stream.criterion('isRetryDelayElapsed', entity, { as });
    expect(answer).toMatchObject({ success: true, matches: true });
    expect(scene.server.faults).toEqual([]);
  });

  it('lets the small ones before it that came with it, however large it is', async () => {
    const scene = await stage({}, { greet: 'none' });
    scene.member.start();
    const stream = await scene.server.joined();
    const order: string[] = [];
    const large = stream
      .criterion('isRetryDelayElapsed', { ...after, blob: 'x'.repeat(10_000_000) })
      .then(() => order.push('large'));
    const small = stream.criterion('isRetryDelayElapsed', after).then(() => order.push('small'));
    await stream.keepAlive();
    const greet = { memberId: stream.memberId, joinedLegalEntityId: 'acme', success: true };
    stream.send('CalculationMemberGreetEvent', JSON.stringify(greet));
    await Promise.all([large, small]);
    expect(order).toEqual(['small', 'large']);
  });

  it('is refused by its requestId where it is larger than what is parsed', async () => {
    const scene = await stage();
    const stream = await joined(scene);
    const entity = { blob: 'x'.repeat(16 * 1024 * 1024) };
    expect(await stream.criterion('isRetryDelayElapsed', entity)).toMatchObject({
      success: false,
      error: { code: 'REQUEST_TOO_LARGE' },
    });
    expect(await stream.criterion('isRetryDelayElapsed', after)).toMatchObject({ matches: true });
    expect(scene.server.faults).toEqual([]);
  });

  it('is logged loudly once per stream, and counted every time', async () => {
    const scene = await stage();
    const stream = await joined(scene);
    for (let n = 0; n < 5; n++) await stream.criterion('nope', after);
    const refused = scene.lines.filter(({ fields }) => fields['code'] === 'CRITERION_UNKNOWN');
    expect(refused.map(({ level }) => level)).toEqual(['warn', 'debug', 'debug', 'debug', 'debug']);
    expect(scene.counts['request refused']).toBe(5);
  });

  it('of an unknown type is left alone', async () => {
    const scene = await stage();
    const stream = await joined(scene);
    const events: string[] = [];
    stream.onEvent((type) => events.push(type));
    stream.send('SomethingNew', '{}');
    stream.send('__proto__', '{}');
    stream.send('CalculationMemberGreetEvent', '{"success":false}');
    await stream.keepAlive();
    expect(events).toEqual(['EventAckResponse']);
    expect(scene.member.state.status).toBe('joined');
  });
});
