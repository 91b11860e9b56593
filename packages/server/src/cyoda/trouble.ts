/** Why a stream ended, in words that say what to do. Pure. */
import { Code, ConnectError } from '@connectrpc/connect';
import type { ServerErrorCode } from '../errors.ts';

export type CyodaErrorCode = Extract<ServerErrorCode, `CYODA_${string}`>;

/** What ended a stream, or kept it from being joined. No text of it holds a token. */
export class CyodaError extends Error {
  override readonly name = 'CyodaError';
  readonly code: CyodaErrorCode;

  constructor(code: CyodaErrorCode, message: string, details: { cause?: unknown } = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : {});
    this.code = code;
  }

  /** No waiting heals it, only somebody who changes a token or a setting. It is tried again all the same, seldom. */
  get isRefusal(): boolean {
    return refusals.has(this.code);
  }
}

const refusals: ReadonlySet<CyodaErrorCode> = new Set([
  'CYODA_UNAUTHENTICATED',
  'CYODA_FORBIDDEN',
  'CYODA_NOT_CYODA',
  'CYODA_JOIN_REFUSED',
  'CYODA_WRONG_LEGAL_ENTITY',
  'CYODA_TOKEN_UNREADABLE',
]);

/** What the transport threw, or nothing where the server ended the stream. */
export function troubleOf(thrown: unknown, at: { url: string; isJoined: boolean }): CyodaError {
  if (thrown instanceof CyodaError) return thrown;
  const { url, isJoined } = at;
  if (thrown === undefined) {
    const message = `The Cyoda server at ${url} ended the stream${isJoined ? '' : ' before it greeted'}. It is joined again.`;
    return new CyodaError('CYODA_STREAM_LOST', message);
  }
  const error = ConnectError.from(thrown);
  const said = plainWords(error.rawMessage).slice(0, MAX_SAID);
  const fail = (code: CyodaErrorCode, message: string) =>
    new CyodaError(code, message, { cause: new Error(said) });
  const status = statuses[error.code];
  if (status) return fail(status.code, status.message(url, said));
  if (error.code === Code.Unavailable && !isJoined) {
    return fail(
      'CYODA_UNREACHABLE',
      `No Cyoda server answers at ${url} (${said}).${tlsHint(said)} It is tried again.`,
    );
  }
  const what = isJoined ? 'was lost' : 'was lost before the greeting';
  const hint = isJoined ? '' : portHint(url);
  return fail(
    'CYODA_STREAM_LOST',
    `The stream to ${url} ${what} (${Code[error.code]}: ${said}).${hint} It is joined again.`,
  );
}

/** OpenSSL names its source files and lines. Its reason is enough. */
function plainWords(said: string): string {
  return /:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+)/.exec(said)?.[1] ?? said;
}

function tlsHint(said: string): string {
  if (said.includes('wrong version number')) {
    return ' The server does not speak TLS at this port: use grpc://, or another port.';
  }
  return /certificate/i.test(said)
    ? ' Name the authority of its certificate in NODE_EXTRA_CA_CERTS, and use a host that the certificate names.'
    : '';
}

function portHint(url: string): string {
  return url.startsWith('grpc:')
    ? ' If it repeats: CYODA_URL needs the gRPC port, 9090 by default, and grpcs:// where that port expects TLS.'
    : ' If it repeats: CYODA_URL needs the gRPC port, 9090 by default.';
}

interface Status {
  readonly code: CyodaErrorCode;
  readonly message: (url: string, said: string) => string;
}

/** What a status of gRPC means here, joined or not. */
const statuses: Partial<Record<Code, Status>> = {
  [Code.Unauthenticated]: {
    code: 'CYODA_UNAUTHENTICATED',
    message: (url, said) =>
      `The Cyoda server at ${url} does not accept the token (${said}). Renew it in CYODA_TOKEN_FILE, which is read again on every join, or set CYODA_TOKEN and restart.`,
  },
  [Code.PermissionDenied]: {
    code: 'CYODA_FORBIDDEN',
    message: (url, said) =>
      `The Cyoda server at ${url} does not let this token join (${said}). The token needs ROLE_M2M and the legal entity in CYODA_LEGAL_ENTITY.`,
  },
  [Code.Unimplemented]: {
    code: 'CYODA_NOT_CYODA',
    message: (url, said) =>
      `What answers at ${url} has no CloudEventsService (${said}). Set CYODA_URL to the gRPC port of a Cyoda server, 9090 by default.`,
  },
  [Code.ResourceExhausted]: {
    code: 'CYODA_MESSAGE_TOO_LARGE',
    message: (url, said) =>
      `The Cyoda server at ${url} sent an event that is too large, or takes no more (${said}). Send smaller entities, or attach none.`,
  },
};

const MAX_SAID = 300;
