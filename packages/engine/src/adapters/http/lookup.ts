/** Finds the addresses of a host and hands on only those that may be connected to. */
import { lookup as systemLookup } from 'node:dns/promises';
import { isIPv6, type LookupFunction } from 'node:net';
import { callbackify } from 'node:util';
import { type AddressKind, parseAddress } from './address.ts';
import { never, type Refusal } from './allow.ts';

/** All addresses of a host, as texts, in the order in which to try them. */
export type Resolve = (host: string) => Promise<readonly string[]>;

const ADVICE = 'If it should be, name it in `allow`.';

/** The address of a destination is not one to connect to. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
  readonly code = 'ADDRESS_REFUSED';

  /** `unlisted`: the name is not in the list, and was not looked up. */
  constructor(host: string, kind: AddressKind | 'unlisted') {
    if (kind === 'unlisted') super(`The host '${host}' is not allowed. ${ADVICE}`);
    else {
      // Without the address itself: who may submit a task need not learn what is inside.
      const verdict = never.has(kind) ? 'never allowed.' : `not allowed. ${ADVICE}`;
      super(`The host '${host}' has a ${kind} address, which is ${verdict}`);
    }
  }
}

/**
 * A `lookup` for sockets. The socket connects to what it gets here and asks nobody again, so a name that
 * changes its address between check and connect gains nothing.
 */
export function guardedLookup(
  refusal: Refusal,
  resolve: Resolve = systemAddresses,
): LookupFunction {
  const underWay = new Map<string, Promise<readonly string[]>>();

  const find = callbackify(addressesOf);

  return (host, options, callback) => {
    find(host, (error, addresses) => {
      const [first] = addresses ?? [];
      if (first === undefined) callback(error, []);
      else if (options.all) callback(null, addresses.map(withFamily));
      else callback(null, first, withFamily(first).family);
    });
  };

  async function addressesOf(host: string): Promise<string[]> {
    const found = await resolveOnce(host);
    let refused: AddressKind | undefined;
    const allowed = found.filter((text) => {
      const address = parseAddress(text);
      if (!address) return false;
      const kind = refusal(host, address);
      refused ??= kind;
      return kind === undefined;
    });
    if (allowed.length > 0) return allowed.slice(0, MAX_ADDRESSES);
    if (refused) throw new AddressRefused(host, refused);
    throw Object.assign(new Error(`'${host}' has no address.`), { code: 'ENOTFOUND' });
  }

  /** One question per host at a time: a slow name server must not take all the threads that ask. */
  function resolveOnce(host: string): Promise<readonly string[]> {
    let question = underWay.get(host);
    if (!question) {
      question = ask(host).finally(() => underWay.delete(host));
      underWay.set(host, question);
    }
    return question;
  }

  /** Whatever a resolver of the user's own does becomes a promise. */
  async function ask(host: string): Promise<readonly string[]> {
    return resolve(host);
  }
}

const MAX_ADDRESSES = 16;

async function systemAddresses(host: string): Promise<string[]> {
  const found = await systemLookup(host, { all: true });
  return found.map(({ address }) => address);
}

function withFamily(address: string): { address: string; family: 4 | 6 } {
  return { address, family: isIPv6(address) ? 6 : 4 };
}
