/** The body of a request becomes something to calculate, or a refusal with a code. Pure. */
import { type CriterionName, type CriterionSettings, isCriterionName } from 'redrive';
import { FUNCTION_NAME, meantBy, shownName, unknownCriterion } from '../criteria/names.ts';
import { isObject, objectOf, type RequestType, textOf } from './events.ts';
import { readParameters } from './parameters.ts';

/** Whom an answer is for. */
export interface Addressee {
  readonly requestId: string;
  readonly entityId?: string;
}

/** What every calculation needs. */
interface Calculation extends Addressee {
  readonly entity: unknown;
  readonly context?: string;
  /** Options of the request; they were checked. */
  readonly settings?: CriterionSettings;
  /** What was odd about the parameters. */
  readonly warnings: readonly string[];
}

export type CalculationRequest =
  | (Calculation & { readonly kind: 'criterion'; readonly name: CriterionName })
  | (Calculation & { readonly kind: 'function' });

type RefusalCode =
  | 'INVALID_JSON'
  | 'INVALID_REQUEST'
  | 'REQUEST_TOO_LARGE'
  | 'CRITERION_UNKNOWN'
  | 'FUNCTION_UNKNOWN'
  | 'PROCESSOR_NOT_SUPPORTED';

/** Without an addressee nobody can be answered: the event itself is then acknowledged as failed. */
export interface Refusal {
  readonly kind: 'refusal';
  readonly code: RefusalCode;
  readonly message: string;
  readonly to: Addressee | undefined;
}

/** A larger body is not parsed. Counted in UTF-16 units, which is what it costs. */
const MAX_BODY = 16 * 1024 * 1024;
/** Ids are echoed, so they are bounded. */
const MAX_ID = 1024;

export function readRequest(type: RequestType, body: string): CalculationRequest | Refusal {
  if (body.length > MAX_BODY) {
    const message = `The request has ${body.length} characters; ${MAX_BODY} are allowed. Send a smaller entity.`;
    return refusal('REQUEST_TOO_LARGE', message, addresseeIn(body));
  }
  const fields = objectOf(body);
  if (fields === undefined) {
    return refusal('INVALID_JSON', `The body of the ${type} is no JSON object.`, addresseeIn(body));
  }
  const requestId = textOf(fields['requestId']);
  if (requestId === undefined || requestId.length > MAX_ID) {
    const message = `The ${type} has no requestId of 1 to ${MAX_ID} characters, so it cannot be answered.`;
    return refusal('INVALID_REQUEST', message, undefined);
  }
  const to = addressee(requestId, textOf(fields['entityId']));
  switch (type) {
    case 'EntityProcessorCalculationRequest': {
      const message = `Redrive offers criteria and the function ${FUNCTION_NAME}, no processors. Give the processor '${shownName(fields['processorName'])}' other calculationNodesTags.`;
      return refusal('PROCESSOR_NOT_SUPPORTED', message, to);
    }
    case 'EntityCriteriaCalculationRequest': {
      const name = fields['criteriaName'];
      return isCriterionName(name)
        ? { kind: 'criterion', name, ...to, ...calculationOf(fields) }
        : refusal('CRITERION_UNKNOWN', unknownCriterion(name), to);
    }
    case 'EntityFunctionCalculationRequest': {
      const name = fields['functionName'];
      return name === FUNCTION_NAME
        ? { kind: 'function', ...to, ...calculationOf(fields) }
        : refusal('FUNCTION_UNKNOWN', unknownFunction(name), to);
    }
  }
}

function calculationOf(fields: Record<string, unknown>) {
  const { payload, parameters } = fields;
  return {
    // With attachEntity false there is no payload: the entity is undefined then, which every criterion has an answer for.
    entity: isObject(payload) ? payload['data'] : undefined,
    ...readParameters(parameters),
  };
}

function unknownFunction(name: unknown): string {
  if (isCriterionName(name)) {
    return `'${name}' is a criterion: it answers yes or no. The function is ${FUNCTION_NAME}.`;
  }
  return `There is no function '${shownName(name)}'.${meantBy(name, [FUNCTION_NAME])} The function is ${FUNCTION_NAME}.`;
}

function refusal(code: RefusalCode, message: string, to: Addressee | undefined): Refusal {
  return { kind: 'refusal', code, message, to };
}

function addressee(requestId: string, entityId: string | undefined): Addressee {
  return entityId === undefined || entityId.length > MAX_ID
    ? { requestId }
    : { requestId, entityId };
}

/** Servers write the ids before the payload, so the first part of a body that cannot be parsed still says whom to answer. */
function addresseeIn(body: string): Addressee | undefined {
  const start = body.slice(0, HEAD);
  const requestId = /"requestId"\s*:\s*"([^"\\]{1,256})"/.exec(start)?.[1];
  const entityId = /"entityId"\s*:\s*"([^"\\]{1,256})"/.exec(start)?.[1];
  return requestId === undefined ? undefined : addressee(requestId, entityId);
}

const HEAD = 4096;
