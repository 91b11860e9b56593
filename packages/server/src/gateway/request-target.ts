/** The URL of a request to the gateway, and the path that goes to a provider. Texts only: a URL parser would rewrite them. */

const GATEWAY_PREFIX = '/gateway/';

/** `policyId` is decoded; `rest` is what follows, as it was written: '', '/v1/chat?x=1' or '?x=1'. */
type Target = { policyId: string; rest: string } | { fault: string };

const POLICY_ID = /^[\w.-]{1,128}$/;
/** What may stand in a request target (RFC 3986), without `#`. Some clients leave `[`, `]`, `|`, `{`, `}` and quotes unescaped. */
const CHARACTERS = /^[\w!$%&'()*+,;=:@/?.~[\]|{}"^`-]*$/;
/** A segment that a server may take for `.` or `..`, also where it cuts off parameters after `;`. */
const DOTS = /^\.{1,2}(?:;|$)/;

export function isGatewayUrl(url: string | undefined): url is string {
  return url !== undefined && url.startsWith(GATEWAY_PREFIX);
}

export function parseTarget(url: string): Target {
  const [, policyId = '', rest = ''] = /^\/gateway\/([^/?#]*)(.*)$/s.exec(url) ?? [];
  if (!POLICY_ID.test(policyId)) {
    return { fault: 'The path must begin with /gateway/ and the id of a routing policy.' };
  }
  const fault = faultIn(rest);
  return fault === undefined ? { policyId, rest } : { fault };
}

function faultIn(rest: string): string | undefined {
  if (!CHARACTERS.test(rest)) {
    return 'The path has a character that must be percent-encoded, or a fragment (#).';
  }
  const [path = ''] = rest.split('?', 1);
  if (path.includes('//')) return 'The path has an empty segment (//). Write one slash.';
  // Once, as a server does. Only what could be a slash or a dot matters here.
  const decoded = path.replace(/%(2e|2f|5c)/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  const isUnsafe = decoded.split(/[/\\]/).some((segment) => DOTS.test(segment));
  return isUnsafe ? "The path has a dot segment ('.' or '..', perhaps encoded)." : undefined;
}

/** The path for a provider whose `base_url` has this path. */
export function joinPaths(basePath: string, rest: string): string {
  const base = basePath.replace(/\/+$/, '');
  const joined = base + rest;
  return joined.startsWith('/') ? joined : `/${joined}`;
}
