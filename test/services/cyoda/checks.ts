/** What is wrong with the events that a member sends, in sentences. */
import type { WireEvent } from './wire.ts';

export type Body = Record<string, unknown>;

const MAX_REASON_BYTES = 2048;

/** The body, or what is wrong with the envelope. */
export function bodyOf(event: WireEvent): Body | string {
  if (event.id === '' || event.source === '') return `${event.type}: no id or no source`;
  if (event.specVersion !== '1.0') return `${event.type}: spec_version is '${event.specVersion}'`;
  if (event.text === undefined) return `${event.type}: the body does not come as text`;
  try {
    const body: unknown = JSON.parse(event.text);
    return isRecord(body) ? body : `${event.type}: the body is no object`;
  } catch {
    return `${event.type}: the body is no JSON`;
  }
}

export function joinFaults(body: Body): string[] {
  const { id, tags } = body;
  return [
    ...(typeof id === 'string' && id !== '' ? [] : ['join: no id']),
    ...(isTexts(tags) && tags.length > 0 ? [] : ['join: tags is no list of texts']),
  ];
}

/** Of an answer to a request of that entity. */
export function answerFaults(type: string, body: Body, entityId: unknown): string[] {
  const faults: string[] = [];
  const expect = (isTrue: boolean, fault: string) => {
    if (!isTrue) faults.push(`${type}: ${fault}`);
  };
  expect(typeof body['id'] === 'string' && body['id'] !== '', 'no id');
  expect(body['entityId'] === entityId, `entityId is ${JSON.stringify(body['entityId'])}`);
  expect(typeof body['success'] === 'boolean', 'success is missing');
  const { warnings, error, reason } = body;
  expect(warnings === undefined || isTexts(warnings), 'warnings is no list of texts');
  expect(
    error === undefined ||
      (isRecord(error) &&
        typeof error['code'] === 'string' &&
        typeof error['message'] === 'string' &&
        typeof error['retryable'] === 'boolean'),
    'error is not {code, message, retryable}',
  );
  expect(body['success'] === true || error !== undefined, 'a failure without error');
  if (type === 'EntityCriteriaCalculationResponse') {
    expect(typeof body['matches'] === 'boolean', 'matches is missing');
    expect(typeof reason === 'string', 'reason is missing');
    expect(Buffer.byteLength(String(reason)) <= MAX_REASON_BYTES, 'reason is too long');
  }
  if (type === 'EntityFunctionCalculationResponse' && body['success'] === true) {
    expect(body['resultKind'] === 'Schedule', 'resultKind is not Schedule');
    for (const fault of scheduleFaults(body['result'])) expect(false, fault);
  }
  return faults;
}

function scheduleFaults(result: unknown): string[] {
  if (!isRecord(result)) return ['result is no object'];
  const { fireAt, fireAfterMs, expireAt, expireAfterMs, ...others } = result;
  const isOne = (a: unknown, b: unknown) => (a === undefined) !== (b === undefined);
  const numbers = [fireAt, fireAfterMs, expireAt, expireAfterMs].filter((n) => n !== undefined);
  return [
    ...(isOne(fireAt, fireAfterMs) ? [] : ['result has not exactly one of fireAt and fireAfterMs']),
    ...(expireAt !== undefined && expireAfterMs !== undefined ? ['result expires twice'] : []),
    ...(numbers.every(Number.isSafeInteger) ? [] : ['result has a number that is no integer']),
    ...(Object.keys(others).length === 0 ? [] : [`result has ${Object.keys(others).join(', ')}`]),
  ];
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

function isRecord(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
