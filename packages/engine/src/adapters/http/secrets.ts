/** Credentials: found by name when something is sent, put into headers, and kept out of everything else. */
import type { Failure } from 'redrive';
import { headerFault, isConnectionHeader } from './headers.ts';

/** One set of credentials, and the only `origins` they are sent to: `https://api.example.com`. */
export type Secret = (
  | { authorization: string }
  | { bearer: string }
  | { basic: { user: string; password: string } }
  | { headers: Readonly<Record<string, string>> }
) & { origins: readonly string[] };

/** By name, or a function that finds them: in a vault, a file, the environment. */
export type Secrets =
  | Readonly<Record<string, Secret>>
  | ((name: string, origin: string) => Secret | undefined | Promise<Secret | undefined>);

export interface Credentials {
  headers: readonly (readonly [name: string, value: string])[];
  /** What must appear nowhere. */
  texts: readonly string[];
}

/** A failure: nothing was sent. */
type Found = { credentials: Credentials } | { failure: Failure };

/** The credentials of this name for this origin. It never rejects. */
export async function findSecret(
  secrets: Secrets | undefined,
  name: string,
  origin: string,
): Promise<Found> {
  let secret: Secret | undefined;
  try {
    if (typeof secrets === 'function') secret = await secrets(name, origin);
    else if (secrets && Object.hasOwn(secrets, name)) secret = secrets[name];
  } catch (error) {
    // Of the error only its code: a vault may say anything in its messages.
    const { code } = Object(error) as { code?: unknown };
    const why = typeof code === 'string' && /^\w{1,64}$/.test(code) ? ` (${code})` : '';
    return missing('SECRET_UNAVAILABLE', `The secret '${name}' could not be read${why}.`);
  }
  if (secret === undefined || secret === null) {
    return missing('UNKNOWN_SECRET', `There is no secret '${name}'. Add it to \`secrets\`.`);
  }
  const wrong = secretFault(secret);
  if (wrong) return missing('INVALID_SECRET', `The secret '${name}' ${wrong}`);
  if (!secret.origins.includes(origin)) {
    const message = `The secret '${name}' is not for ${origin}. If it should be, add that to its \`origins\`.`;
    return {
      failure: { class: 'technical', code: 'SECRET_REFUSED', message, notExecuted: true },
    };
  }
  return { credentials: credentialsOf(secret) };
}

/** What is wrong with it, without a word of it; undefined: nothing. */
export function secretFault(secret: unknown): string | undefined {
  if (typeof secret !== 'object' || secret === null) return shape;
  const { origins } = secret as { origins?: unknown };
  if (origins === undefined || (Array.isArray(origins) && origins.length === 0)) {
    return "has no `origins`, so it could be sent to any receiver. List the origins that it may be sent to, such as ['https://api.example.com'].";
  }
  if (!Array.isArray(origins) || !origins.every(isOrigin)) {
    return "has `origins` that are not a list of origins such as 'https://api.example.com'.";
  }
  if (!hasTexts(secret)) return shape;
  const headers = headersOf(secret as Secret);
  for (const [name, value] of headers) {
    if (headerFault(name, value) || isConnectionHeader(name)) {
      return 'cannot be sent as headers: printable ASCII, without line breaks, and none that belong to the connection.';
    }
  }
  return undefined;
}

/** Finds every text that must not be seen, the longest first; undefined: there is none. */
export function pattern(texts: readonly string[]): RegExp | undefined {
  const all = new Set(texts.flatMap(spellings).filter((text) => text !== ''));
  if (all.size === 0) return undefined;
  const parts = [...all].sort((a, b) => b.length - a.length);
  return new RegExp(
    parts.map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'),
    'g',
  );
}

const shape =
  'is not { authorization }, { bearer }, { basic: { user, password } } or { headers }, with texts.';

function credentialsOf(secret: Secret): Credentials {
  const headers = headersOf(secret);
  const texts = headers.flatMap(([, value]) => {
    // Without its scheme too: `Bearer` is not the secret.
    const space = value.indexOf(' ');
    return space === -1 ? [value] : [value, value.slice(space + 1)];
  });
  if ('basic' in secret) texts.push(secret.basic.password);
  return { headers, texts };
}

function headersOf(secret: Secret): [string, string][] {
  if ('authorization' in secret) return [['authorization', secret.authorization]];
  if ('bearer' in secret) return [['authorization', `Bearer ${secret.bearer}`]];
  if ('basic' in secret) {
    const { user, password } = secret.basic;
    const text = Buffer.from(`${user}:${password}`).toString('base64');
    return [['authorization', `Basic ${text}`]];
  }
  return Object.entries(Object(secret.headers) as Record<string, string>);
}

function hasTexts(secret: object): boolean {
  const { authorization, bearer, basic, headers } = secret as Record<string, unknown>;
  if (authorization !== undefined) return isText(authorization);
  if (bearer !== undefined) return isText(bearer);
  if (basic !== undefined) {
    const { user, password } = Object(basic) as Record<string, unknown>;
    return typeof user === 'string' && isText(password);
  }
  const values = Object.values(Object(headers) as Record<string, unknown>);
  return values.length > 0 && values.every(isText);
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** As it stands in a header, in JSON, on a page, in a URL. */
function spellings(text: string): string[] {
  const wellFormed = Buffer.from(text).toString();
  const json = JSON.stringify(text).slice(1, -1);
  return [
    text,
    json,
    // As PHP writes it, as a page shows it, and as a header is often echoed.
    json.replaceAll('/', '\\/'),
    text.replace(/[&<>"']/g, (one) => entities[one]!),
    encodeURIComponent(wellFormed),
    Buffer.from(text).toString('base64'),
  ];
}

function isOrigin(origin: unknown): boolean {
  return typeof origin === 'string' && URL.canParse(origin) && new URL(origin).origin === origin;
}

/** It may be there next time, and the task did nothing wrong. */
function missing(code: string, message: string): Found {
  return { failure: { class: 'transient', code, message, notExecuted: true, counted: false } };
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
