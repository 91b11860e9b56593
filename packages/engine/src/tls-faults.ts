/** What to do where the certificate of a server is not taken. Pure. */

const untrusted = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
]);

/** All that an error was caused by, itself first. */
export function causesOf(error: unknown): { code?: unknown; message?: unknown; name?: unknown }[] {
  const causes: object[] = [];
  for (let one = error; Object(one) === one && causes.length < 10;) {
    causes.push(one as object);
    one = (one as { cause?: unknown }).cause;
  }
  return causes;
}

/** A sentence or two, or undefined where TLS is not what failed. `ca`: how the reader gives an authority of their own. */
export function tlsFault(error: unknown, ca: string): string | undefined {
  for (const { code } of causesOf(error)) {
    if (typeof code !== 'string') continue;
    if (untrusted.has(code))
      return `The certificate of the server is of an authority that is not known here (${code}). Give the certificate of that authority as ${ca}.`;
    if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
      return `The certificate of the server is not valid now (${code}). Renew it there, or correct the clock here.`;
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
      return `The certificate of the server is for another name (${code}). Use the name that stands in the certificate as the host.`;
    if (code.startsWith('ERR_SSL_') || code === 'EPROTO')
      return `The server does not speak TLS as this program does (${code}). Look whether that port is the one with TLS.`;
  }
  return undefined;
}
