/** The envelopes of the Cyoda protocol: which events there are, and how a body gets in and out of a CloudEvent. Pure. */
import { create } from '@bufbuild/protobuf';
import { type CloudEvent, CloudEventSchema } from './gen/cloudevents_pb.ts';

/** What a server asks, with the type of the event that answers it. */
export const answerTypes = {
  EntityCriteriaCalculationRequest: 'EntityCriteriaCalculationResponse',
  EntityFunctionCalculationRequest: 'EntityFunctionCalculationResponse',
  EntityProcessorCalculationRequest: 'EntityProcessorCalculationResponse',
} as const;

export type RequestType = keyof typeof answerTypes;

/** What a server sent. The bodies of requests are read later, when it is their turn. */
export type Incoming =
  | { kind: 'greet'; body: string }
  | { kind: 'keepAlive'; envelopeId: string }
  | { kind: 'ack' }
  | { kind: 'request'; type: RequestType; envelopeId: string; body: string }
  | { kind: 'unknown'; type: string };

export function readEnvelope(event: CloudEvent): Incoming {
  const { type, id } = event;
  switch (type) {
    case 'CalculationMemberGreetEvent':
      return { kind: 'greet', body: bodyOf(event) };
    case 'CalculationMemberKeepAliveEvent':
      return { kind: 'keepAlive', envelopeId: id };
    case 'EventAckResponse':
      return { kind: 'ack' };
    default:
      return Object.hasOwn(answerTypes, type)
        ? { kind: 'request', type: type as RequestType, envelopeId: id, body: bodyOf(event) }
        : { kind: 'unknown', type };
  }
}

/** The body is JSON as text or as bytes. Anything else is read as an empty text, which is no JSON. */
function bodyOf({ data }: CloudEvent): string {
  if (data.case === 'textData') return data.value;
  return data.case === 'binaryData' ? utf8.decode(data.value) : '';
}

/** Bytes that are not UTF-8 become U+FFFD: one bad character in a name must not fail the customer's write. */
const utf8 = new TextDecoder();

/** An event of this member, with its body as text. `id` is that of the envelope. */
export function envelope(id: string, type: string, body: string): CloudEvent {
  const event = create(CloudEventSchema);
  event.id = id;
  event.source = 'urn:redrive:member';
  event.specVersion = '1.0';
  event.type = type;
  event.data = { case: 'textData', value: body };
  return event;
}

export interface Join {
  readonly tags: readonly string[];
  /** The tenant; it has to be that of the token. */
  readonly legalEntity?: string | undefined;
}

export function joinEvent(id: string, { tags, legalEntity }: Join): CloudEvent {
  const joinedLegalEntityId = legalEntity;
  return envelope(
    id,
    'CalculationMemberJoinEvent',
    JSON.stringify({ id, tags, joinedLegalEntityId }),
  );
}

/** `sourceEventId` is the id of the envelope: the one in the body of a keep-alive is always the member's. */
export function ackEvent(id: string, sourceEventId: string, error?: AnswerError): CloudEvent {
  const success = error === undefined;
  return envelope(id, 'EventAckResponse', JSON.stringify({ id, sourceEventId, success, error }));
}

/** Why there is no result, as an answer carries it. */
export interface AnswerError {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
}

type Greeting =
  | { ok: true; memberId: string; legalEntity: string }
  | { ok: false; code: 'CYODA_JOIN_REFUSED' | 'CYODA_WRONG_LEGAL_ENTITY'; message: string };

/** A greeting without `success: true` is a refusal: servers leave a false one out. */
export function readGreeting(body: string, expectedEntity: string | undefined): Greeting {
  const greet = objectOf(body);
  const memberId = textOf(greet?.['memberId']) ?? '';
  const legalEntity = textOf(greet?.['joinedLegalEntityId']) ?? '';
  if (greet?.['success'] !== true) {
    const error = Object(greet?.['error']) as Record<string, unknown>;
    const said = textOf(error['message']) ?? textOf(error['code']);
    const why = said === undefined ? '' : ` It says: ${said.slice(0, MAX_SAID)}.`;
    const message = `The Cyoda server refused the join.${why} Look at the token (it needs ROLE_M2M), CYODA_TAGS and CYODA_LEGAL_ENTITY.`;
    return { ok: false, code: 'CYODA_JOIN_REFUSED', message };
  }
  if (expectedEntity !== undefined && legalEntity !== expectedEntity) {
    const message = `The Cyoda server joined this member to the legal entity '${legalEntity.slice(0, MAX_SAID)}', and CYODA_LEGAL_ENTITY is '${expectedEntity}'. Correct the setting, or use a token of that legal entity.`;
    return { ok: false, code: 'CYODA_WRONG_LEGAL_ENTITY', message };
  }
  return { ok: true, memberId, legalEntity };
}

const MAX_SAID = 200;

/** Nothing where the text is not a JSON object. */
export function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
