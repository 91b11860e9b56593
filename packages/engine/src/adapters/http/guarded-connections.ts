/** Connections that go only where the list of what is allowed lets them. */
import { type Address, parseAddress } from './address.ts';
import type { Allowed } from './allow.ts';
import { Connections } from './connections.ts';
import { AddressRefused, guardedLookup } from './lookup.ts';
import { type HttpOptions, type HttpSettings, readOptions } from './options.ts';

export interface GuardedConnections extends Pick<Connections, 'request' | 'reached' | 'close'> {
  /** Why nothing can be sent to this host. Ask before a request: an address is connected to without a lookup. */
  refused(url: URL): AddressRefused | undefined;
}

/** For other HTTP clients than the delivery. Options that cannot work are a `ConfigError`. */
export function guardedConnections(options?: Omit<HttpOptions, 'secrets'>): GuardedConnections {
  const settings = readOptions(options);
  const connections = connectionsOf(settings);
  return {
    request: (url, method, headers, path) => connections.request(url, method, headers, path),
    reached: (request) => connections.reached(request),
    close: () => connections.close(),
    refused: (url) => refusedHost(settings.allowed, url),
  };
}

export function connectionsOf(settings: HttpSettings): Connections {
  const lookup = guardedLookup(settings.allowed.refusal, settings.resolve);
  return new Connections({ ...settings, lookup });
}

/** Why nothing can be sent there, as far as that is known without a lookup. */
export function refusedHost(allowed: Allowed, { hostname }: URL): AddressRefused | undefined {
  const address = addressIn(hostname);
  if (!address) {
    return allowed.admits(hostname) ? undefined : new AddressRefused(hostname, 'unlisted');
  }
  const kind = allowed.refusal(hostname, address);
  return kind && new AddressRefused(hostname, kind);
}

/** The address that a host of a URL is; undefined: it is a name. A URL spells all of them so that they end like this. */
function addressIn(hostname: string): Address | undefined {
  return /[\d\]]$/.test(hostname) ? parseAddress(hostname.replace(/^\[|\]$/g, '')) : undefined;
}
