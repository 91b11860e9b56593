import { checkObject } from 'redrive/internal';
import type { HandlerOptions } from '../engine.ts';
import type { LaneOptions } from '../engine-options.ts';
import { EngineError } from '../errors.ts';
import { destinationOf } from '../intake/submission.ts';
import type { Handler, RegisteredHandler } from './handlers.ts';

/** What `handle` was given, checked as far as it can be without knowing the engine. */
export interface GivenHandler {
  handler: Pick<RegisteredHandler, 'schema' | 'run'>;
  idempotent: boolean | undefined;
  lane: LaneOptions;
}

export function givenHandler(
  name: string,
  rest: [Handler<never>] | [HandlerOptions, Handler<never>],
): GivenHandler {
  if (typeof name !== 'string' || destinationOf(name).kind !== 'handler') {
    throw new EngineError('INVALID_ENGINE', 'A handler has a name, which is not a URL.');
  }
  const [options, run] =
    rest.length > 1 ? (rest as [HandlerOptions, Handler<never>]) : [{}, rest[0] as Handler<never>];
  if (typeof run !== 'function' || typeof options === 'function') throw noFunction(name);
  checkObject(`The handler '${name}'`, options);
  const { schema, idempotent, ...lane } = options;
  return { handler: { schema, run }, idempotent, lane };
}

function noFunction(name: string): EngineError {
  const order = 'Options come before the function: handle(name, options, fn).';
  return new EngineError('INVALID_ENGINE', `The handler '${name}' is not a function. ${order}`);
}
