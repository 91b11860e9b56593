/** What never leaves the process by a log, an event or a health check: credentials and payloads. */

/** Takes credentials out of a text: those of URLs wherever they stand, and `password=...` in any form. */
export function withoutCredentials(text: string): string {
  let clean = text;
  if (clean.includes('://')) {
    clean = clean.replace(userInfo, '$1***@').replace(oddUserInfo, '$1***@');
  }
  if (clean.includes('=')) clean = clean.replace(parameter, '$1***');
  return authentication.test(clean) ? clean.replace(authenticationAll, '$1 ***') : clean;
}

/** The same of anything that is to be logged, as plain data of bounded size. */
export function cleanData(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') {
    return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}...` : value;
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

/** The authority of a URL ends at the first slash; its last @ ends the credentials. */
const userInfo = /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s"'<>/?#]*@/gi;
/** A password with a slash in it, which is no URL any more, but a password still. A port is none. */
const oddUserInfo = /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s"'<>/?#:@]*:(?!\d{1,5}[/?#])[^\s"'<>@]*@/gi;
const parameter =
  /\b((?:[a-z_]*password|passwd|pwd|[a-z_]*secret|[a-z_]*token|api_?key|signature)=)[^&\s"'<>;,]+/gi;
const authentication = /\b(?:bearer|basic)\s/i;
/** Words that only follow, as in "basic authentication", have neither digits nor capitals. */
const authenticationAll = /\b([Bb]earer|BEARER|[Bb]asic|BASIC)\s+(?=\S*[A-Z\d=])[\w+/=.~-]{8,}/g;

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
