import type { IncomingMessage } from 'node:http';

/** The characters of a host and a port (RFC 3986); no comma, no space, no `@`. */
const HOST = /^[\w.~!$&'()*+;=%:[\]-]*$/;
const ABSOLUTE = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i;

type Request = Pick<IncomingMessage, 'rawHeaders' | 'httpVersion' | 'url'>;

/**
 * Why the `Host` of a request cannot be trusted (RFC 9112, section 3.2); undefined: it can. A proxy and this service must
 * never take two different hosts from one request, and Node keeps the first of several without a word.
 */
export function hostFault({ rawHeaders, httpVersion, url = '' }: Request): string | undefined {
  const hosts = hostsIn(rawHeaders);
  const [host] = hosts;
  if (hosts.length > 1) {
    return `The request has ${hosts.length} headers Host. Send exactly one.`;
  }
  if (host === undefined) {
    return httpVersion === '1.1' ? 'The request has no header Host. Send one.' : undefined;
  }
  if (!HOST.test(host)) return 'The header Host is not a host with or without a port.';
  const target = ABSOLUTE.exec(url)?.[1];
  return target === undefined || target.toLowerCase() === host.toLowerCase()
    ? undefined
    : 'The header Host is not the host of the request target. Send the same in both.';
}

function hostsIn(rawHeaders: readonly string[]): string[] {
  const hosts: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts.push(rawHeaders[i + 1]!);
  }
  return hosts;
}
