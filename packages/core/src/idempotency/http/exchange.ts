import { ConfigError } from '../../errors.ts';
import { show } from '../../options/faults.ts';
import { isIdempotencyError } from '../idempotency-error.ts';
import { type Claim, idempotent } from '../idempotent.ts';
import { idempotencyKey } from '../key.ts';
import type { HttpSettings } from './http-options.ts';
import { type IdempotencyRefusal, refusal, refusalOf } from './refusal.ts';
import { fromRecord, type KeptResponse, releasesKey, toRecord } from './response-record.ts';

/** A request with a key, as far as the rules look at it. */
export interface KeyedRequest {
  /** Who asks. Keys of two principals never meet. */
  principal: unknown;
  method: string;
  route: string;
  key: string;
  /** With its query. */
  url: string;
  /** SHA-256 of the body's bytes. */
  bodyDigest: string;
}

export type Exchange =
  /** The handler ran, and its response goes to the client. */
  | { kind: 'ran' }
  /** It ran for an earlier request, whose response this is. */
  | { kind: 'replay'; response: KeptResponse & { body: Uint8Array } }
  | { kind: 'refused'; refusal: IdempotencyRefusal };

/**
 * Serves a request once for its key: `run` is called unless the key has a response, and what it made is recorded before
 * this resolves. What `run` throws frees the key and is thrown on.
 */
export async function serveOnce(
  settings: HttpSettings,
  request: KeyedRequest,
  run: (claim: Claim) => Promise<KeptResponse>,
): Promise<Exchange> {
  const { method, route, url, bodyDigest } = request;
  let hasRun = false;
  const work = async (claim: Claim) => {
    hasRun = true;
    const response = await run(claim);
    if (releasesKey(response.status)) throw new Released();
    return toRecord(response);
  };
  let record;
  try {
    record = await idempotent(settings.store, storeKey(request), work, {
      ...settings.call,
      payload: { body: bodyDigest, url },
      subject: { category: 'API_REQUEST', operation: `${method} ${route}` },
    });
  } catch (error) {
    const thrown = hasRun ? fateOfRun(error) : undefined;
    if (thrown) throw thrown.error;
    if (hasRun) return { kind: 'ran' };
    if (!isIdempotencyError(error)) throw error;
    return { kind: 'refused', refusal: refusalOf(error) };
  }
  return hasRun ? { kind: 'ran' } : replayOf(record);
}

/** Thrown by the work, so that the key becomes free. */
class Released extends Error {}

/**
 * What is left to throw after the handler ran. A handler whose claim was lost has its own response or its own error: the
 * client gets that, and the audit trail the loss.
 */
function fateOfRun(error: unknown): { error: unknown } | undefined {
  if (error instanceof Released) return undefined;
  if (!isIdempotencyError(error) || error.code !== 'IDEMPOTENCY_LEASE_LOST') return { error };
  return 'cause' in error && !(error.cause instanceof Released)
    ? { error: error.cause }
    : undefined;
}

function replayOf(record: unknown): Exchange {
  const response = fromRecord(record);
  if (!response) return { kind: 'refused', refusal: refusal('IDEMPOTENCY_RECORD_INVALID') };
  const { status, headers, body, unkept } = response;
  if (body) return { kind: 'replay', response: { status, headers, body } };
  const refused = refusal('RESULT_NOT_STORED', { original_status: status, reason: unkept });
  // Where the result can be read.
  const location = headers.find(([name]) => name === 'location')?.[1];
  if (location === undefined) return { kind: 'refused', refusal: refused };
  return { kind: 'refused', refusal: { ...refused, headers: { location } } };
}

const MAX_PRINCIPAL_LENGTH = 1024;

/** A hash, so that the store learns neither the principal nor the key. */
function storeKey({ principal, method, route, key }: KeyedRequest): string {
  if (
    typeof principal !== 'string' ||
    principal === '' ||
    principal.length > MAX_PRINCIPAL_LENGTH
  ) {
    throw new ConfigError(
      'INVALID_CONFIG',
      `The principal of a request with an Idempotency-Key is ${show(principal)}. The option principal must give 1 to ${MAX_PRINCIPAL_LENGTH} characters that name who asks: without them one client could get the responses of another.`,
    );
  }
  return idempotencyKey({
    operation: 'http',
    tenantId: principal,
    correlationId: key,
    additionalParams: { method, route },
  });
}
