/** What the operations say of an error of the client. */
import type { NatsConnection } from '@nats-io/transport-node';
import { textOf } from '../../../broker/answers.ts';
import { EngineError, type EngineErrorCode, isEngineError } from '../../../errors.ts';
import { JetStreamApiError, errors } from '../library.ts';

/** Trying again does not help. Any other failure is retried. */
export const permanentCodes = [
  'NATS_REFUSED',
  'NATS_NO_STREAM',
  'NATS_CLOSED',
  'NATS_WRONG_REVISION',
  'NATS_OUTCOME_UNKNOWN',
] as const satisfies readonly EngineErrorCode[];

const NOT_FOR_ACCOUNT = 10039;

/** `doing`: `publish to orders.eu`, as the message has it. */
export function faultOf(error: unknown, connection: NatsConnection, doing: string): EngineError {
  if (isEngineError(error)) return error;
  const cause = { cause: error };
  const said = textOf(error);
  const refused = (why: string) =>
    new EngineError('NATS_REFUSED', `Cannot ${doing}: ${why}`, cause);
  if (isJetStreamOff(error, connection)) {
    return refused(
      'JetStream is not enabled. Add jetstream {} to the configuration of the server.',
    );
  }
  const forbidden = linkOf(error, errors.PermissionViolationError);
  if (forbidden) {
    const { operation, subject } = forbidden;
    const verb = operation === 'publish' ? 'publish' : 'subscribe';
    return refused(`the user may not ${verb} to ${subject}. Give it the permission.`);
  }
  const isClosed =
    linkOf(error, errors.ClosedConnectionError) ?? linkOf(error, errors.DrainingConnectionError);
  if (isClosed) {
    return new EngineError(
      'NATS_CLOSED',
      `Cannot ${doing}: the connection is closed. Connect anew. ${UNKNOWN}`,
      cause,
    );
  }
  const api = linkOf(error, JetStreamApiError);
  const isMistake =
    error instanceof errors.InvalidArgumentError || error instanceof errors.InvalidSubjectError;
  if (isMistake || (api && api.status < 500)) return refused(`${said}.`);
  return unavailable(doing, said, isUndone(error) ? '' : ` ${UNKNOWN}`, error);
}

export function unavailable(doing: string, why: string, more = '', cause?: unknown): EngineError {
  return new EngineError(
    'NATS_UNAVAILABLE',
    `Cannot ${doing} now: ${why}. The server is away or busy, or a cluster chooses a leader.${more}`,
    { cause },
  );
}

/** The server said that it did not do it, or nobody took the request. */
export function isUndone(error: unknown): boolean {
  return (
    linkOf(error, JetStreamApiError) !== undefined ||
    linkOf(error, errors.NoRespondersError) !== undefined ||
    (isEngineError(error) && (error.code === 'NATS_REFUSED' || error.code === 'NATS_NO_STREAM'))
  );
}

/** Nobody took a request to JetStream. */
export function isUnanswered(error: unknown): boolean {
  return linkOf(error, errors.NoRespondersError) !== undefined;
}

function isJetStreamOff(error: unknown, { info }: NatsConnection): boolean {
  return (
    linkOf(error, JetStreamApiError)?.code === NOT_FOR_ACCOUNT ||
    (isUnanswered(error) && info?.jetstream !== true)
  );
}

export function hasCode(error: unknown, ...codes: readonly number[]): boolean {
  const api = linkOf(error, JetStreamApiError);
  return api !== undefined && codes.includes(api.code);
}

const MAX_CAUSES = 8;

/** The error, or what caused it. */
function linkOf<T extends Error>(
  error: unknown,
  type: abstract new (...given: never[]) => T,
): T | undefined {
  let link = error;
  for (let i = 0; link instanceof Error && i < MAX_CAUSES; i++) {
    if (link instanceof type) return link;
    link = link.cause;
  }
  return undefined;
}

const UNKNOWN = 'Whether the server has done it is not known.';
