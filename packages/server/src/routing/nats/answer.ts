/** One request for routing over NATS: bytes in, the answer of the HTTP API out. */
import { headers, type MsgHdrs } from '@nats-io/transport-node';
import type { TSchema } from 'typebox';
import { Problem, PROBLEM_TYPE, problemOf } from '../../http/problem.ts';
import { parseBody } from '../../http/reading/body.ts';
import { checkOf, invalid } from '../../http/reading/validate.ts';
import { decideRequest, outcomeRequest } from '../../http/routes/routing-requests.ts';
import { DecideRequest, OutcomeRequest } from '../../http/schemas/routing.ts';
import type { ServiceContext } from '../../service-context.ts';

type Routing = ServiceContext['routing'];

export interface Answer {
  status: number;
  body: string;
  headers: MsgHdrs;
  /** What nobody foresaw. */
  fault?: unknown;
}

/** Takes a body that its schema allows. */
type Handle = (routing: Routing, body: never) => Promise<unknown>;

function operation(schema: TSchema, handle: Handle) {
  const check = checkOf(schema);
  return async (routing: Routing, value: unknown): Promise<unknown> => {
    const faults = check(value, 'body');
    if (faults) throw invalid(faults);
    return handle(routing, value as never);
  };
}

/** By the last word of their subjects. */
export const operations = {
  decide: operation(DecideRequest, decideRequest),
  outcome: operation(OutcomeRequest, outcomeRequest),
} as const;

/** Never rejects: whatever goes wrong is an answer. */
export async function answerTo(
  routing: Routing,
  name: keyof typeof operations,
  bytes: Uint8Array,
  maxBytes: number,
): Promise<Answer> {
  try {
    if (bytes.length > maxBytes) {
      const detail = `The body has ${bytes.length} bytes, and the limit is ${maxBytes} (REDRIVE_MAX_REQUEST_BYTES).`;
      throw new Problem('BODY_TOO_LARGE', detail);
    }
    const { problem, value } = parseBody(Buffer.from(bytes), true);
    if (problem) throw problem;
    const answer = await operations[name](routing, value);
    return { status: 200, body: JSON.stringify(answer), headers: about(200, 'application/json') };
  } catch (error) {
    return refusal(problemOf(error));
  }
}

export function refusal(problem: Problem): Answer {
  const { status, code, cause } = problem;
  return {
    status,
    body: problem.toText(),
    headers: about(status, PROBLEM_TYPE),
    ...(code === 'INTERNAL' ? { fault: cause ?? problem } : {}),
  };
}

function about(status: number, type: string): MsgHdrs {
  const written = headers();
  written.set('Redrive-Status', String(status));
  written.set('Content-Type', type);
  return written;
}
