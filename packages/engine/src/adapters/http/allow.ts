/** Which addresses a delivery may connect to. */
import type { Fault } from 'redrive';
import {
  type Address,
  type AddressKind,
  type AddressRange,
  contains,
  embeddedIn,
  kindOf,
  lastOf,
  parseRange,
} from './address.ts';

/** Why a host's address must not be connected to; undefined: it may. */
export type Refusal = (host: string, address: Address) => AddressKind | undefined;

export interface Allowed {
  refusal: Refusal;
  /** Whether a host of this name could have an address that may be connected to. Only then is the name looked up. */
  admits: (name: string) => boolean;
}

/**
 * Reads the list of what is allowed: `public`, `loopback`, `private`, a range (`10.1.0.0/16`), an address, a host
 * (`billing.internal`), or all hosts below one (`*.internal`). `isPublic`: public addresses are, whatever the list says.
 */
export function readAllow(allow: unknown, isPublic: boolean, faults: Fault[]): Allowed {
  const kinds = new Set<AddressKind>(isPublic ? ['public'] : []);
  const ranges: AddressRange[] = [];
  const hosts = new Set<string>();
  const suffixes: string[] = [];
  if (Array.isArray(allow)) allow.forEach(readEntry);
  else if (allow !== undefined) addFault('allow', 'is not a list of hosts and ranges.');

  return {
    refusal(written, address) {
      const kind = kindOf(address);
      if (kinds.has(kind)) return undefined;
      if (never.has(kind)) return kind;
      if (isNamed(written)) return undefined;
      const inner = embeddedIn(address);
      const inRange = ranges.some(
        (range) => contains(range, address) || (inner !== undefined && contains(range, inner)),
      );
      return inRange ? undefined : kind;
    },
    admits(written) {
      // Any name at all may have an address of these.
      if (kinds.has('public') || kinds.has('private') || ranges.some(isBeyondLoopback)) return true;
      if (isNamed(written)) return true;
      return (kinds.has('loopback') || ranges.length > 0) && isLocalhost(hostName(written));
    },
  };

  function isNamed(written: string): boolean {
    const host = hostName(written);
    return hosts.has(host) || suffixes.some((suffix) => host.endsWith(suffix));
  }

  function readEntry(entry: unknown, index: number): void {
    const path = `allow.${index}`;
    if (entry === 'public' || entry === 'loopback' || entry === 'private') {
      kinds.add(entry);
      return;
    }
    const text = typeof entry === 'string' ? entry : '';
    const range = parseRange(text);
    if (range) {
      const kind = kindOf(range.first);
      if (never.has(kind) && kindOf(lastOf(range)) === kind) {
        addFault(path, `'${text}' is ${kind}: such addresses are never allowed.`);
      }
      ranges.push(range);
      return;
    }
    const below = text.startsWith('*.');
    const host = hostName(below ? text.slice(2) : text);
    if (!isHost(host)) {
      addFault(
        path,
        "is not 'public', 'loopback', 'private', a range such as '10.0.0.0/8', or a host without port such as 'billing.internal'.",
      );
    } else if (below) suffixes.push(`.${host}`);
    else hosts.add(host);
  }

  function addFault(path: string, message: string): void {
    faults.push({ path, code: 'INVALID_VALUE', message });
  }
}

/** Nobody delivers to these: they are the machine's own, give away credentials, or reach more than one. */
export const never: ReadonlySet<AddressKind> = new Set([
  'link-local',
  'metadata',
  'multicast',
  'unspecified',
  'broadcast',
]);

function isBeyondLoopback(range: AddressRange): boolean {
  return kindOf(range.first) !== 'loopback' || kindOf(lastOf(range)) !== 'loopback';
}

/** The names that are loopback wherever they are asked for (RFC 6761). */
function isLocalhost(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost');
}

/** `Example.com.` and `example.com` are one host. */
function hostName(text: string): string {
  return text.toLowerCase().replace(/\.$/, '');
}

function isHost(text: string): boolean {
  // What a URL would spell otherwise, such as 0x7f.1, would never be met.
  return /^[\w-]+(?:\.[\w-]+)*$/.test(text) && URL.parse(`http://${text}`)?.hostname === text;
}
