import { itemOf } from '@redrive/engine';
import { expect, it } from 'vitest';
import { idOf } from './evaluator.ts';
import { failureOf, keptEntity, requestOf } from './review-item.ts';

it('groups by code, whatever quotes and lengths its message has', () => {
  const messages = ["it's", `'a' "b"`, 'plain', 'x'.repeat(5000), '', "'"];
  const fingerprints = messages.map((message) => {
    const failure = failureOf({ code: 'INVALID_TIME', message }, 70_000);
    expect(failure.message.length).toBeLessThan(500);
    return itemOf('EVALUATION_FAILED', failure, 'criterion:isRetryDelayElapsed').fingerprint;
  });
  expect(new Set(fingerprints).size).toBe(1);
  const other = failureOf({ code: 'DATA_UNAVAILABLE', message: 'plain' });
  const { fingerprint } = itemOf('EVALUATION_FAILED', other, 'criterion:isRetryDelayElapsed');
  expect(fingerprints).not.toContain(fingerprint);
});

it.each([
  [{ entity: { entityId: 'a', id: 'b' }, entityId: 'c' }, 'c'],
  [{ entity: { entityId: 'a', id: 'b' } }, 'a'],
  [{ entity: { id: 7 } }, '7'],
  [{ entity: { id: '' } }, undefined],
  [{ entity: { id: {} } }, undefined],
  [{ entity: null }, undefined],
  [{ entity: { id: 'x'.repeat(1000) } }, 'x'.repeat(256)],
])('knows an entity by the id of the request, then by its own: %#', (request, id) => {
  expect(idOf(request)).toBe(id);
});

it('keeps an entity up to the limit of payloads, and 64 KiB at most', () => {
  const entity = { id: 'a', blob: 'x'.repeat(100) };
  expect(keptEntity(entity, 1000)).toEqual({ payload: Buffer.from(JSON.stringify(entity)) });
  const cut = keptEntity(entity, 50);
  expect([cut.payload.toString(), cut.cutFrom]).toEqual(['{"id":"a"}', 120]);
  expect(keptEntity({ blob: 'x'.repeat(70_000) }, 1_000_000).payload.toString()).toBe('{}');
});

it('takes nothing odd from the context of an edited item', () => {
  const extra = { entity_id: 7, context: {}, settings: 'no' };
  expect(requestOf({ id: 1 }, { extra })).toEqual({ entity: { id: 1 } });
  expect(requestOf(1, undefined)).toEqual({ entity: 1 });
});
