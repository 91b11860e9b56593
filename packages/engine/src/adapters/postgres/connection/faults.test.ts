import { expect, test } from 'vitest';
import { EngineError } from '../../../errors.ts';
import {
  DatabaseTimeout,
  faultOf,
  isConnectionFault,
  isContention,
  isDataFault,
} from './faults.ts';

function fromServer(code: string): Error {
  return Object.assign(new Error(`said by the server`), { code, severity: 'ERROR' });
}

test.each([
  ['08006', 'STORE_UNAVAILABLE'],
  ['28P01', 'STORE_DENIED'],
  ['3D000', 'STORE_DENIED'],
  ['28000', 'STORE_DENIED'],
  ['40001', 'STORE_UNAVAILABLE'],
  ['53300', 'STORE_UNAVAILABLE'],
  ['55P03', 'STORE_UNAVAILABLE'],
  ['57014', 'STORE_UNAVAILABLE'],
  ['57P01', 'STORE_UNAVAILABLE'],
  ['25006', 'STORE_READ_ONLY'],
  ['42501', 'STORE_READ_ONLY'],
  ['53100', 'STORE_FULL'],
  ['42P01', 'SCHEMA_MISSING'],
  ['42703', 'SCHEMA_MISSING'],
  ['3F000', 'SCHEMA_MISSING'],
])('gives %s of the server the code %s, and keeps what was said', (state, code) => {
  const error = fromServer(state);
  const fault = faultOf(error) as EngineError;
  expect(fault).toMatchObject({ code, cause: error });
  expect(fault.message).toContain('said by the server');
});

test.each([
  Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
  Object.assign(new Error('getaddrinfo EAI_AGAIN'), { code: 'EAI_AGAIN' }),
  new Error('Connection terminated unexpectedly'),
  new Error('timeout exceeded when trying to connect'),
  new DatabaseTimeout('no answer within 5 ms'),
])('takes %s for a store that cannot be reached', (error) => {
  expect(faultOf(error)).toMatchObject({ code: 'STORE_UNAVAILABLE', cause: error });
});

test('leaves alone what is nobody’s outage', () => {
  const mistake = new TypeError('x is not a function');
  expect(faultOf(mistake)).toBe(mistake);
  const bug = fromServer('42601');
  expect(faultOf(bug)).toBe(bug);
  const known = new EngineError('STORE_FULL', 'full');
  expect(faultOf(known)).toBe(known);
});

test('knows what may be tried again, what never will work, and which connection is of no more use', () => {
  expect(['40P01', '40001', '22001'].map((code) => isContention(fromServer(code)))).toEqual([
    true,
    true,
    false,
  ]);
  expect(['22021', '23502', '54000', '57014'].map((code) => isDataFault(fromServer(code)))).toEqual(
    [true, true, true, false],
  );
  expect(
    ['57P01', '08006', '25006', '23505'].map((code) => isConnectionFault(fromServer(code))),
  ).toEqual([true, true, true, false]);
  const cut = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  expect(isConnectionFault(cut)).toBe(true);
  expect(isConnectionFault(new Error('a fault of the move'))).toBe(false);
});
