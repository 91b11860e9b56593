/** What never leaves the process by a log, an event or a health check: credentials and payloads. */

/** Takes credentials out of a text: those of URLs wherever they stand, and `password=...` in any form. */
export function withoutCredentials(text: string): string {
  let clean = text;
  if (clean.includes('://')) clean = withoutUserInfo(clean);
  if (clean.includes('=')) clean = clean.replace(parameter, '$1***');
  return authentication.test(clean) ? clean.replace(authenticationAll, '$1 ***') : clean;
}

/**
 * The beginning of a text, without credentials. They are taken out before the text is cut: what is left of a credential
 * after a cut does not look like one.
 */
export function shortened(text: string, maxLength: number): string {
  // Enough beyond the cut for any credential that begins before it; a text may have megabytes.
  return withoutCredentials(text.slice(0, maxLength + MAX_TEXT))
    .slice(0, maxLength)
    .toWellFormed();
}

/** The same of anything that is to be logged, as plain data of bounded size. */
export function cleanData(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') {
    return value.length > MAX_TEXT ? `${shortened(value, MAX_TEXT)}...` : value;
  }
  if (typeof value === 'object' && value !== null) return cleanObject(value, depth);
  if (typeof value === 'bigint') return String(value);
  return typeof value === 'function' || typeof value === 'symbol' ? undefined : value;
}

const MAX_TEXT = 8192;
const MAX_DEPTH = 4;
const MAX_CAUSES = 3;
const MAX_ENTRIES = 50;

const secretName =
  /authorization|cookie|passw(or)?d|secret|credential|api[-_]?key|signature|private[-_]?key|(^|[-_])tokens?$|[a-z]Tokens?$/i;
const contentName = /^(original_?)?(payload|body|content)(_base64|Base64)?$|^raw_?Body$|^answer$/i;

/** A backslash before a quote stays: a line of the log is JSON. */
const parameter =
  /\b((?:[a-z_]*password|passwd|pwd|[a-z_]*secret|[a-z_]*token|api_?key|signature)=)(?:[^&\s"'<>;,\\]|\\[^"'\s])+/gi;
const authentication = /\b(?:bearer|basic)\s/i;
/** Words that only follow, as in "basic authentication", have neither digits nor capitals. */
const authenticationAll = /\b([Bb]earer|BEARER|[Bb]asic|BASIC)\s+(?=\S*[A-Z\d=])[\w+/=.~-]{8,}/g;

/** Piece by piece, not by one expression: that would take a second for a hostile text of many dots or colons. */
function withoutUserInfo(text: string): string {
  const parts = text.split('://');
  const clean = parts.map((part, i) => {
    const isUrl = i > 0 && /[a-z\d+.-]/i.test(parts[i - 1]!.slice(-1));
    return isUrl ? withoutOneUserInfo(part) : part;
  });
  return clean.join('://');
}

/** What follows `://`. */
function withoutOneUserInfo(part: string): string {
  const [url] = /^[^\s"'<>]*/.exec(part)!;
  const [authority] = /^[^/?#]*/.exec(url)!;
  // The last @ of the authority ends the credentials.
  const end = authority.lastIndexOf('@');
  if (end !== -1) return `***${part.slice(end)}`;
  const colon = authority.indexOf(':');
  const after = authority.startsWith('[') || colon === -1 ? '' : url.slice(colon + 1);
  // What is no port cannot follow a host: it is a password.
  if (after === '' || /^\d{1,5}(?![\w%@])/.test(after)) return part;
  // With a slash in it, which is no URL any more, but a password still.
  const at = url.indexOf('@', colon);
  if (at !== -1) return `***${part.slice(at)}`;
  // With its @ cut off by somebody else. A backslash before a quote stays: a line of the log is JSON.
  const rest = part.slice(url.length);
  if (rest !== '' && !/^["'<>]/.test(rest)) return part;
  return `***${backslashesAtEnd(url) % 2 === 1 ? '\\' : ''}${rest}`;
}

function backslashesAtEnd(text: string): number {
  let first = text.length;
  while (text[first - 1] === '\\') first--;
  return text.length - first;
}

function cleanObject(value: object, depth: number): unknown {
  if (value instanceof Error) return cleanError(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (ArrayBuffer.isView(value)) return `<${value.byteLength} bytes>`;
  if (depth >= MAX_DEPTH) return Array.isArray(value) ? '[...]' : '{...}';
  if (Array.isArray(value)) {
    return value.slice(0, MAX_ENTRIES).map((one) => cleanData(one, depth + 1));
  }
  // An instance of something has more in it than whoever logged it knew.
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return `<${nameOf(value)}>`;
  const clean: Record<string, unknown> = {};
  for (const [name, part] of Object.entries(value).slice(0, MAX_ENTRIES)) {
    if (secretName.test(name)) clean[name] = '***';
    else if (contentName.test(name)) clean[name] = '<left out>';
    else clean[name] = cleanData(part, depth + 1);
  }
  return clean;
}

/** What an error says, without whatever else hangs on it: clients hang whole requests there. */
function cleanError(error: Error, depth = 0): Record<string, unknown> {
  const { code } = error as { code?: unknown };
  const { cause } = error;
  return {
    type: error.name,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    message: cleanData(error.message),
    ...(error.stack === undefined ? {} : { stack: cleanData(error.stack) }),
    ...(cause === undefined || depth >= MAX_CAUSES
      ? {}
      : {
          cause:
            cause instanceof Error ? cleanError(cause, depth + 1) : cleanData(cause, MAX_DEPTH),
        }),
  };
}

function nameOf(value: object): string {
  const { constructor } = value as { constructor?: { name?: unknown } };
  return typeof constructor?.name === 'string' && constructor.name !== ''
    ? constructor.name
    : 'object';
}
