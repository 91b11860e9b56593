/** `providers.json`: where each provider of the routing policies is, and what goes there with every request. Pure. */
import { checkUrl, headerFault, isConnectionHeader } from '@redrive/engine/http';
import {
  defaultOf,
  didYouMean,
  type Fields,
  joinPath,
  nearest,
  readFields,
} from 'redrive/internal';
import type { Fault } from 'redrive';
import { inServiceWords } from '../service-words.ts';

/** A provider, ready to be called. */
export interface Provider {
  readonly name: string;
  readonly url: URL;
  /** Lower case. Values may be secrets. */
  readonly headers: ReadonlyMap<string, string>;
  /** Requests that may have been executed are repeated too. */
  readonly retryUnsafe: boolean;
  readonly idleMs: number;
  /** These replace the fields of a JSON body. */
  readonly overrideParams: Readonly<Record<string, unknown>> | undefined;
}

/** One thing that is wrong with the file. */
export interface FileFault {
  path: string;
  code: Fault['code'] | 'MISSING_VARIABLE' | 'ADDRESS_REFUSED' | 'MISSING_FIELD';
  message: string;
}

interface ProvidersContext {
  env: Readonly<Record<string, string | undefined>>;
  /** Of providers that do not say. */
  idleMs: number;
  /** Why this host must not be connected to. */
  refused(url: URL): { message: string } | undefined;
}

type ProvidersReading =
  | { ok: true; providers: ReadonlyMap<string, Provider> }
  | { ok: false; faults: readonly FileFault[] };

const MAX_PROVIDERS = 1000;
const MAX_HEADERS = 64;
const MAX_FAULTS = 100;

const fields = {
  retry_unsafe: { kind: 'boolean', default: false },
  idle_timeout_ms: { kind: 'integer', min: 100, max: 3_600_000 },
} as const satisfies Fields;
const own = ['base_url', 'headers', 'override_params'];
const known = [...Object.keys(fields), ...own];

export function readProviders(data: unknown, context: ProvidersContext): ProvidersReading {
  const faults: FileFault[] = [];
  const providers = new Map<string, Provider>();
  if (!isObject(data)) {
    add('', 'INVALID_VALUE', 'The file is not an object of providers by name.');
    return { ok: false, faults };
  }
  const entries = Object.entries(data).filter(([name]) => name !== '$schema');
  if (entries.length > MAX_PROVIDERS) {
    add('', 'INVALID_VALUE', `The file has ${entries.length} providers, ${MAX_PROVIDERS} at most.`);
    return { ok: false, faults };
  }
  for (const [name, value] of entries) {
    const provider = readProvider(name, value);
    if (provider) providers.set(name, provider);
  }
  return faults.length > 0
    ? { ok: false, faults: faults.slice(0, MAX_FAULTS) }
    : { ok: true, providers };

  function readProvider(name: string, value: unknown): Provider | undefined {
    if (!/^[a-z0-9_]{1,100}$/.test(name)) {
      add(
        name.slice(0, 80),
        'INVALID_VALUE',
        'A provider is named with a-z, 0-9 and _, at most 100.',
      );
    }
    if (!isObject(value)) {
      add(name, 'INVALID_VALUE', 'This is not an object with a base_url.');
      return undefined;
    }
    const { base_url: baseUrl, headers, override_params: params, ...rest } = value;
    for (const key of Object.keys(rest)) {
      if (Object.hasOwn(fields, key)) continue;
      delete rest[key];
      const hint = didYouMean(nearest(key, known));
      add(joinPath(name, key.slice(0, 80)), 'UNKNOWN_FIELD', `There is no such field.${hint}`);
    }
    const values = readFields(rest, fields, Object.keys(fields), name, faults as Fault[]);
    const url = readUrl(baseUrl, joinPath(name, 'base_url'));
    const list = readHeaders(headers, joinPath(name, 'headers'));
    if (params !== undefined && !isObject(params)) {
      add(joinPath(name, 'override_params'), 'INVALID_VALUE', 'This is not an object.');
    }
    return (
      url && {
        name,
        url,
        headers: list,
        retryUnsafe: (values['retry_unsafe'] ?? defaultOf(fields.retry_unsafe)) === true,
        idleMs: (values['idle_timeout_ms'] as number | undefined) ?? context.idleMs,
        overrideParams: isObject(params) && Object.keys(params).length > 0 ? params : undefined,
      }
    );
  }

  function readUrl(given: unknown, path: string): URL | undefined {
    if (given === undefined) {
      add(path, 'MISSING_FIELD', 'It is missing. Write it in full: https://api.example.com/v1');
      return undefined;
    }
    const text = filled(given, path);
    if (text === undefined) return undefined;
    const wrong = checkUrl(text);
    if (wrong) {
      add(path, 'INVALID_VALUE', wrong.message.replace('Name a `secret`', 'Use `headers`'));
      return undefined;
    }
    const url = new URL(text);
    if (url.search !== '' || url.hash !== '' || /[?#]/.test(text)) {
      add(
        path,
        'INVALID_VALUE',
        'The URL has a query or a fragment. The path of a request follows.',
      );
    }
    const refused = context.refused(url);
    if (refused) add(path, 'ADDRESS_REFUSED', inServiceWords(refused.message));
    return url;
  }

  function readHeaders(given: unknown, path: string): Map<string, string> {
    const read = new Map<string, string>();
    if (given === undefined) return read;
    if (!isObject(given) || Object.keys(given).length > MAX_HEADERS) {
      add(path, 'INVALID_VALUE', `This is not an object of at most ${MAX_HEADERS} headers.`);
      return read;
    }
    for (const [name, value] of Object.entries(given)) {
      const at = joinPath(path, name.slice(0, 80));
      const text = filled(value, at);
      if (text === undefined) continue;
      const wrong = headerFault(name, text);
      const lower = name.toLowerCase();
      if (wrong !== undefined) add(at, 'INVALID_VALUE', `This ${wrong}`);
      else if (isConnectionHeader(lower)) {
        add(at, 'INVALID_VALUE', 'This header belongs to the connection and cannot be set.');
      } else if (read.has(lower)) add(at, 'INVALID_VALUE', 'This header stands here twice.');
      else read.set(lower, text);
    }
    return read;
  }

  /** The text with every `${NAME}` replaced. The result may be a secret and is never shown. */
  function filled(given: unknown, path: string): string | undefined {
    if (typeof given !== 'string') {
      add(path, 'INVALID_VALUE', 'This is not a text.');
      return undefined;
    }
    let isWhole = true;
    const text = given.replace(/\$\{([^}]*)\}/g, (_, name: string) => {
      const value = Object.hasOwn(context.env, name) ? context.env[name] : undefined;
      if (value !== undefined && value !== '') return value;
      isWhole = false;
      const shown = /^\w{1,100}$/.test(name) ? name : 'with that name';
      add(
        path,
        'MISSING_VARIABLE',
        `The variable ${shown} is not set. Set it in the environment or in .env.`,
      );
      return '';
    });
    return isWhole ? text : undefined;
  }

  function add(path: string, code: FileFault['code'], message: string): void {
    faults.push({ path, code, message });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return Object.prototype.toString.call(value) === '[object Object]';
}
