import { isUtf8 } from 'node:buffer';
import type { FastifyRequest } from 'fastify';
import { MAX_DEPTH } from '../../json-depth.ts';
import { JsonTooDeep, parseExactly, parsePlainly } from './exact-json.ts';
import { faultPlace } from './json-place.ts';
import type { WireFault } from './faults.ts';
import { Problem } from '../problem.ts';
import { invalid } from './validate.ts';

/** Reads a body. An empty one is none: whether that will do is for the schema to say. */
export function readBody(
  request: FastifyRequest,
  body: Buffer,
  done: (error: Error | null, value?: unknown) => void,
): void {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') {
    done(
      new Problem('UNSUPPORTED_MEDIA_TYPE', `A body is not compressed: ${encoding} is not read.`),
    );
    return;
  }
  const { plainNumbers = false } = request.routeOptions.config;
  const { problem, value } = parseBody(body, plainNumbers);
  done(problem ?? null, value);
}

/** The JSON of a body, or what is wrong with it. */
export function parseBody(
  body: Buffer,
  plainNumbers: boolean,
): { problem?: Problem; value?: unknown } {
  if (body.length === 0) return {};
  // A character that is none would be replaced in silence.
  if (!isUtf8(body)) {
    const detail = 'The body is not UTF-8. Send bytes as payload_base64.';
    return { problem: new Problem('INVALID_JSON', detail) };
  }
  const text = body.toString('utf8');
  try {
    const value: unknown = plainNumbers ? parsePlainly(text) : parseExactly(text);
    // Fastify takes null for no body at all, which may be allowed.
    return value === null ? { problem: invalid([nothing]) } : { value };
  } catch (error) {
    return { problem: error instanceof JsonTooDeep ? tooDeep(error) : notJson(text) };
  }
}

const nothing: WireFault = {
  in: 'body',
  path: '',
  code: 'INVALID_VALUE',
  message: 'An object is needed.',
};

function tooDeep({ position }: JsonTooDeep): Problem {
  return new Problem(
    'JSON_TOO_DEEP',
    `The body is nested more than ${MAX_DEPTH} levels deep, from position ${position} on. Send it flatter, or the payload as payload_base64.`,
    { more: { position } },
  );
}

function notJson(text: string): Problem {
  const position = faultPlace(text) ?? text.length;
  let line = 1;
  let lineStart = 0;
  for (let at = text.indexOf('\n'); at !== -1 && at < position; at = text.indexOf('\n', at + 1)) {
    line++;
    lineStart = at + 1;
  }
  const column = position - lineStart + 1;
  const isEnd = position === text.length;
  const what = isEnd ? 'ends too early' : 'has something unexpected';
  return new Problem(
    'INVALID_JSON',
    `The body is not JSON: it ${what} at position ${position}, line ${line}, column ${column}.`,
    { more: { position, line, column } },
  );
}
