/** Who may ask for what: by token and role, or, without tokens, whoever sits at this machine and no web page. */
import { hash, timingSafeEqual } from 'node:crypto';
import { isIPv4 } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { Role, Settings, Token } from '../settings/settings.ts';
import { Problem } from './problem.ts';

/** `open`: anybody may ask, with tokens or without. */
export type Needed = Role | 'open';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may use the route. Every route says so. */
    role?: Needed;
    /** Its body is read as any program reads JSON: integers that a double cannot hold are rounded. */
    plainNumbers?: true;
  }
  interface FastifyRequest {
    /** Who asks, for the audit trail. */
    by: string;
    /** What the one who asks may do; undefined: nothing but use open routes. */
    role: Role | undefined;
  }
}

/** A token of the gateway may do nothing here: it stands in the configuration of applications. */
const ranks: Readonly<Record<Needed, number>> = {
  open: 0,
  gateway: 0,
  reader: 1,
  operator: 2,
  admin: 3,
};

/** Says who asks. Throws a problem where that is not allowed. */
type Guard = (request: FastifyRequest) => Pick<FastifyRequest, 'by' | 'role'>;

export function createGuard({ tokens }: Pick<Settings, 'tokens'>): Guard {
  return tokens.length > 0 ? tokenGuard(tokens) : localCaller;
}

const MAX_TOKEN = 512;

function tokenGuard(tokens: readonly Token[]): Guard {
  const holderOf = tokenHolder(tokens);
  return (request) => {
    // What does not exist is told to those who may look only.
    const needed = request.routeOptions.config.role ?? 'reader';
    const shown = /^bearer +([\x21-\x7e]+) *$/i.exec(request.headers.authorization ?? '')?.[1];
    const found = shown === undefined || shown.length > MAX_TOKEN ? undefined : holderOf(shown);
    // A probe is answered without a token, and also with one that is no longer valid.
    if (needed === 'open') return { by: found?.name ?? 'anybody', role: found?.role };
    if (!found) {
      const how = shown === undefined ? 'Send a token' : 'This token is not known. Send one';
      throw new Problem('UNAUTHENTICATED', `${how}: Authorization: Bearer ...`, {
        headers: { 'www-authenticate': 'Bearer realm="redrive"' },
      });
    }
    if (ranks[found.role] < ranks[needed]) {
      const message = `'${found.name}' is ${article(found.role)}; this needs ${article(needed)}.`;
      throw new Problem('FORBIDDEN', message);
    }
    return { by: found.name, role: found.role };
  };
}

/** Finds who has a token. Every entry is compared, whichever it is: how long that takes tells nothing. */
export function tokenHolder(
  tokens: readonly Token[],
): (shown: string) => Pick<Token, 'name' | 'role'> | undefined {
  const known = tokens.map(({ name, role, sha256 }) => ({
    name,
    role,
    hash: Buffer.from(sha256, 'hex'),
  }));
  return (shown) => {
    const own = hash('sha256', shown, 'buffer');
    let found: Pick<Token, 'name' | 'role'> | undefined;
    for (const token of known) {
      if (timingSafeEqual(own, token.hash)) found ??= token;
    }
    return found;
  };
}

/**
 * Without tokens everybody on this machine may do everything, so a page in a browser must not: one that gave its name this
 * address (Host), or that posts here from elsewhere (Origin, Sec-Fetch-Site).
 */
export function localCaller({
  method,
  headers,
}: Pick<FastifyRequest, 'method' | 'headers'>): Pick<FastifyRequest, 'by' | 'role'> {
  const host = headers.host?.toLowerCase() ?? '';
  if (!isLoopback(host)) {
    throw new Problem(
      'HOST_NOT_ALLOWED',
      'Without tokens only localhost, 127.0.0.0/8 and [::1] are answered. Set REDRIVE_TOKENS to use another name.',
    );
  }
  const { origin } = headers;
  if (origin !== undefined && origin.toLowerCase() !== `http://${host}`) throw crossOrigin();
  const site = headers['sec-fetch-site'];
  const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none';
  // A link that leads here is fine; a form that posts here is not.
  const isLink = method === 'GET' && headers['sec-fetch-mode'] === 'navigate';
  if (isForeign && !isLink) throw crossOrigin();
  return { by: operatorOf(headers['x-redrive-operator']), role: 'admin' };
}

/** The last host that was one: almost always the next one too. */
let lastLoopback = '';

/** The name of a host, with a port or without. */
function isLoopback(host: string): boolean {
  if (host === lastLoopback) return true;
  if (!isLoopbackName(host)) return false;
  lastLoopback = host;
  return true;
}

function isLoopbackName(host: string): boolean {
  const name = /^(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(host)?.[1]?.toLowerCase() ?? '';
  return name === 'localhost' || name === '[::1]' || (isIPv4(name) && name.startsWith('127.'));
}

const MAX_OPERATOR = 64;

/** Whom the request names, cleaned; `local` unless it does. */
function operatorOf(given: string | string[] | undefined): string {
  if (given === undefined) return 'local';
  const text = Buffer.from(String(given), 'latin1').toString('utf8');
  const name = text.replaceAll(/[\p{C}\uFFFD]/gu, '').trim();
  return name.slice(0, MAX_OPERATOR).toWellFormed().replaceAll('\uFFFD', '').trim() || 'local';
}

function crossOrigin(): Problem {
  const message = 'A web page of another origin must not ask. Set REDRIVE_TOKENS to allow others.';
  return new Problem('CROSS_ORIGIN', message);
}

function article(role: string): string {
  return `${/^[aeiou]/.test(role) ? 'an' : 'a'} ${role}`;
}
