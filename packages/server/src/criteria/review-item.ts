/** A failed evaluation as an item of the inbox, and back: pure. */
import { type FailureReport, type TaskContext, uuidOf } from '@redrive/engine';
import type {
  CriterionError,
  CriterionErrorCode,
  CriterionName,
  FailureClass,
  MaxRetriesInput,
  RetryDelayInput,
} from 'redrive';
import { type EvaluationRequest, idOf } from './evaluator.ts';

/** The kind of the destination: a replay is delivered to the criterion of that name. */
export const CRITERION = 'criterion';

/** More than this is not kept of an entity, whatever the limit of payloads is. */
const MAX_ENTITY_BYTES = 64 * 1024;
const MAX_SETTINGS_CHARS = 16 * 1024;
const MAX_FIELD_CHARS = 1024;
const MAX_MESSAGE_CHARS = 250;

/** Every field that a criterion reads. The type makes a field that core adds an error here. */
const fields = Object.keys({
  entityId: true,
  id: true,
  operationType: true,
  lastAttemptTime: true,
  currentTime: true,
  retryDelaySeconds: true,
  attemptCount: true,
  exponentialBackoff: true,
  backoffMultiplier: true,
  maxDelaySeconds: true,
  jitterEnabled: true,
  maxRetries: true,
  criticalOperation: true,
  operationPriority: true,
  manualRetryOverride: true,
} satisfies Record<keyof RetryDelayInput | keyof MaxRetriesInput, true>);

const classes: Readonly<Record<CriterionErrorCode, FailureClass>> = {
  DATA_UNAVAILABLE: 'business',
  INVALID_TIME: 'business',
  EVALUATION_TIMEOUT: 'transient',
  CALCULATION_ERROR: 'technical',
  OVERFLOW_ERROR: 'technical',
};

export interface Kept {
  /** The entity as JSON. */
  readonly payload: Buffer;
  /** How large the entity was, where only the fields that criteria read were kept. */
  readonly cutFrom?: number;
}

/** The entity in bounded size. */
export function keptEntity(entity: unknown, maxBytes: number): Kept {
  const text = textOf(entity);
  const bytes = Buffer.byteLength(text);
  if (bytes <= Math.min(maxBytes, MAX_ENTITY_BYTES)) return { payload: Buffer.from(text) };
  return { payload: Buffer.from(JSON.stringify(readFields(entity))), cutFrom: bytes };
}

/** An entity that no JSON can be written of is as good as none: nesting too deep, a getter that throws. */
function textOf(entity: unknown): string {
  try {
    return JSON.stringify(entity) ?? 'null';
  } catch {
    return 'null';
  }
}

/** Only what a criterion reads, and of that no objects and no long texts: enough to evaluate again. */
function readFields(entity: unknown): Record<string, unknown> {
  const own = Object(entity) as Record<string, unknown>;
  const kept: Record<string, unknown> = {};
  for (const name of fields) {
    if (!Object.hasOwn(own, name)) continue;
    const value = own[name];
    if (typeof value === 'string') kept[name] = value.slice(0, MAX_FIELD_CHARS).toWellFormed();
    else kept[name] = typeof value === 'object' && value !== null ? {} : value;
  }
  return kept;
}

/** Whose failure it is: the same entity and code again is the same item. Without an id the entity itself decides. */
export function keyOf(
  name: CriterionName,
  request: EvaluationRequest,
  { code }: CriterionError,
  payload: () => Buffer,
): string {
  const id = idOf(request);
  return id === undefined
    ? uuidOf(CRITERION, name, code, '', payload().toString('latin1'))
    : uuidOf(CRITERION, name, code, id);
}

/** Straight into the inbox: it is never retried by itself. */
export function reportOf(
  messageId: string,
  name: CriterionName,
  request: EvaluationRequest,
  error: CriterionError,
  kept: Kept,
): FailureReport {
  return {
    messageId,
    to: { kind: CRITERION, address: name },
    payload: kept.payload,
    context: contextOf(request),
    failure: failureOf(error, kept.cutFrom),
    attempt: 1,
    maxAttempts: 1,
    verdict: 'EVALUATION_FAILED',
  };
}

/**
 * What varies stands in quotes: the engine groups items by their message without what is quoted, so one criterion and one
 * code are one group.
 */
export function failureOf({ code, message }: CriterionError, cutFrom?: number) {
  const detail = message.replaceAll("'", '"').slice(0, MAX_MESSAGE_CHARS).toWellFormed();
  const cut =
    cutFrom === undefined
      ? ''
      : `; the entity has ${cutFrom} bytes, and only the fields that criteria read were kept`;
  return { class: classes[code], code, message: `The evaluation failed: '${detail}${cut}'` };
}

/** What an item weighs: its entity, and what chose its settings. */
export function weightOf({ payload }: Kept, { context = '', settings }: EvaluationRequest): number {
  return payload.length + context.length + Math.min(charsOf(settings), MAX_SETTINGS_CHARS);
}

/** The entities of one request share its settings: measured for each, ten thousand would take a minute. */
const settingsChars = new WeakMap<object, number>();

function charsOf(settings: EvaluationRequest['settings']): number {
  if (settings === undefined) return 0;
  let chars = settingsChars.get(settings);
  if (chars === undefined) {
    chars = JSON.stringify(settings).length;
    settingsChars.set(settings, chars);
  }
  return chars;
}

function contextOf({ entityId, context, settings }: EvaluationRequest): TaskContext {
  const isSmall = charsOf(settings) <= MAX_SETTINGS_CHARS;
  return {
    contentType: 'application/json',
    extra: {
      ...(entityId === undefined ? {} : { entity_id: entityId }),
      ...(context === undefined ? {} : { context }),
      ...(settings !== undefined && isSmall ? { settings } : {}),
    },
  };
}

/** The request that an item was made of. The entity may have been edited since. */
export function requestOf(entity: unknown, context: TaskContext | undefined): EvaluationRequest {
  const { entity_id: entityId, context: chosen, settings } = context?.extra ?? {};
  return {
    entity,
    ...(typeof entityId === 'string' ? { entityId } : {}),
    ...(typeof chosen === 'string' ? { context: chosen } : {}),
    ...(typeof settings === 'object' && settings !== null ? { settings } : {}),
  };
}
