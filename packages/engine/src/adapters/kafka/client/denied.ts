/** Why a broker refused the connection, and what to do about it. Pure. */
import { causesOf, tlsFault } from '../../../tls-faults.ts';
import type { ConnectionSettings } from './settings.ts';

type Access = Pick<ConnectionSettings['connection'], 'tls' | 'sasl'>;

const USER = 'sasl.username and sasl.password (KAFKA_USERNAME and KAFKA_PASSWORD)';
const TLS = 'tls (KAFKA_TLS)';

/** Undefined where the error is something else, which may pass. Never contains a password. */
export function whyDenied(error: unknown, { tls, sasl }: Access): string | undefined {
  const fault = tlsFault(error, 'tls.ca (KAFKA_TLS_CA_FILE)');
  if (fault !== undefined) return fault;
  const causes = causesOf(error);
  if (causes.some(({ message }) => message === 'Broker requires TLS.'))
    return `The broker requires TLS. Set ${TLS}.`;
  const failed = causes.find(({ code }) => code === 'PLT_KFK_AUTHENTICATION');
  // What a broker refused has its answer; without one it has closed the connection.
  const isAnswered = causes.some((one) => 'response' in one);
  if (failed && isAnswered && /mechanism/.test(String(failed.message)))
    return `The broker does not support the SASL mechanism ${sasl?.mechanism}. Set sasl.mechanism (KAFKA_SASL_MECHANISM) to one that it supports.`;
  if (failed && (isAnswered || tls))
    return `The broker refuses the user ${JSON.stringify(sasl?.username)}, or its password. Correct ${USER}.`;
  if (!causes.some(({ message }) => message === 'Connection closed')) return undefined;
  if (!sasl && !tls)
    return `The broker closed the connection at the first request. It may require TLS or a user: set ${TLS}, or ${USER}.`;
  if (!sasl)
    return `The broker closed the connection at the first request. It may require a user: set ${USER}.`;
  return tls
    ? undefined
    : `The broker closed the connection at the first request. It may require TLS: set ${TLS}.`;
}
