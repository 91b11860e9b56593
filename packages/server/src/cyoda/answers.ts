/** Results and refusals become the bodies of answers. Pure. */
import type { CriterionResult, nextRetryTime } from 'redrive';
import { isoTime } from '../criteria/wire.ts';
import { cut } from './cut.ts';
import { answerTypes, type AnswerError, type RequestType } from './events.ts';
import type { Addressee, Refusal } from './requests.ts';

/** The server cuts a longer reason, or drops the answer. In bytes of UTF-8. */
const MAX_REASON_BYTES = 2048;
const MAX_WARNINGS = 20;
const MAX_WARNING_BYTES = 512;

/** An answer, ready but for the id of its event. */
export interface Answer {
  readonly type: string;
  readonly body: object;
}

/** An evaluation that failed is an answer as well: `success: false` would fail the customer's write. */
export function criterionAnswer(
  to: Addressee,
  result: CriterionResult,
  warnings: readonly string[] = [],
): Answer {
  return {
    type: answerTypes.EntityCriteriaCalculationRequest,
    body: {
      ...addressed(to),
      success: true,
      matches: result.matches,
      reason: cut(reasonOf(result), MAX_REASON_BYTES),
      ...warned(result.warnings, warnings),
    },
  };
}

/** `result` has exactly one key: any other is an error for the server. */
export function scheduleAnswer(
  to: Addressee,
  scheduled: ReturnType<typeof nextRetryTime>,
  warnings: readonly string[] = [],
): Answer {
  return {
    type: answerTypes.EntityFunctionCalculationRequest,
    body: {
      ...addressed(to),
      success: true,
      result:
        'fireAtMs' in scheduled
          ? { fireAt: Math.ceil(scheduled.fireAtMs) }
          : { fireAfterMs: Math.ceil(scheduled.fireAfterMs) },
      resultKind: 'Schedule',
      ...warned(scheduled.warnings, warnings),
    },
  };
}

export function refusalAnswer(type: RequestType, to: Addressee, refusal: Refusal): Answer {
  const isCriterion = type === 'EntityCriteriaCalculationRequest';
  const error = errorOf(refusal);
  return {
    type: answerTypes[type],
    body: {
      ...addressed(to),
      success: false,
      ...(isCriterion
        ? { matches: false, reason: cut(`${error.code}: ${error.message}`, MAX_REASON_BYTES) }
        : {}),
      error,
    },
  };
}

/** The same request would be refused again. */
export function errorOf({ code, message }: Refusal): AnswerError {
  return { code, message: cut(message, MAX_REASON_BYTES), retryable: false };
}

/** The text of an answer: the id of its event comes first. */
export function answerText(id: string, { body }: Answer): string {
  return JSON.stringify({ id, ...body });
}

function addressed({ requestId, entityId }: Addressee): object {
  return entityId === undefined ? { requestId } : { requestId, entityId };
}

/** A list of texts: an object in it makes the server drop the answer. */
function warned(
  warnings: readonly { code: string; message: string }[],
  more: readonly string[],
): { warnings?: string[] } {
  if (warnings.length + more.length === 0) return {};
  const texts = [...warnings.map(({ code, message }) => `${code}: ${message}`), ...more];
  return { warnings: texts.slice(0, MAX_WARNINGS).map((text) => cut(text, MAX_WARNING_BYTES)) };
}

/** The code, then what a person wants to know: it stands in the audit of the server, and in the refusal of a manual transition. */
function reasonOf(result: CriterionResult): string {
  const { errors, reason } = result;
  if (errors.length > 0) {
    return errors.map(({ code, message }) => `${code}: ${message}`).join(' ');
  }
  return 'delayMs' in result
    ? `${reason}: ${timing(result.elapsedMs, result.delayMs, result.dueAtMs)}`
    : `${reason}: attempt ${result.attemptCount}, limit ${result.limit}`;
}

function timing(elapsedMs: number | null, delayMs: number | null, dueAtMs: number | null): string {
  const dueAt = isoTime(dueAtMs);
  return `${elapsedMs} of ${delayMs} ms elapsed${dueAt === null ? '' : `, due at ${dueAt}`}`;
}
