/** What to do when a TLS connection fails, such as by an untrusted certificate. Pure. */

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
      return `The certificate of the server is signed by an authority that this program does not trust (${code}). Give the certificate of that authority as ${ca}.`;
    if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
      return `The certificate of the server is not valid now (${code}). Renew the certificate, or correct the clock of this machine.`;
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
      return `The certificate of the server is for another name (${code}). Use a host name that the certificate contains.`;
    if (code.startsWith('ERR_SSL_') || code === 'EPROTO')
      return `The TLS handshake with the server failed (${code}). Check that the port is the one for TLS.`;
  }
  return undefined;
}
