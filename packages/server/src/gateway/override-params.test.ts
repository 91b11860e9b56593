import { describe, expect, it } from 'vitest';
import { overridden } from './override-params.ts';

describe('override_params', () => {
  const over = (body: string, params: object = { model: 'm' }) =>
    overridden(Buffer.from(body), 'application/json', { ...params }).toString();

  it.each([
    [
      '{"seed":12345678901234567890,"t":1.0,"model":"x"}',
      '{"seed":12345678901234567890,"t":1.0,"model":"m"}',
    ],
    [
      '{ "a" : [1, {"model": 2}], "model" : {"b": "}"} , "c":"\\"," }',
      '{"a" : [1, {"model": 2}],"model":"m","c":"\\","}',
    ],
    ['{"model":1,"x":2,"model":3}', '{"model":"m","x":2}'],
    ['{"mod\\u0065l":1}', '{"model":"m"}'],
    ['{}', '{"model":"m"}'],
    [' {"a\\\\":"\\\\"} ', '{"a\\\\":"\\\\","model":"m"}'],
    ['{"__proto__":{"x":1}}', '{"__proto__":{"x":1},"model":"m"}'],
    ['["model"]', '["model"]'],
  ])('makes of %s what the rest of it is, and the fields', (body, expected) => {
    expect(over(body)).toBe(expected);
  });

  it('reaches any depth that JSON can have', () => {
    const deep = '['.repeat(3000) + ']'.repeat(3000);
    expect(over(`{"a":${deep}}`)).toBe(`{"a":${deep},"model":"m"}`);
  });
});
