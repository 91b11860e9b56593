/** The HTTP API from outside: what a command asks a server, and what becomes of it when that does not go well. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { parseExactly } from '../http/reading/exact-json.ts';
import { type Guard, isPageOf, isReady } from './answers.ts';
import { CommandError, exits, type Io, type OptionTable } from './command.ts';
import { shown } from './terminal/safe-text.ts';
import type { ReadyView } from './wire.ts';

/** Every command that asks a server has these. */
export const connection = {
  url: {
    kind: 'text',
    value: 'url',
    summary:
      'Where the server is: REDRIVE_URL, or this machine at HTTP_PORT, or http://127.0.0.1:8086.',
  },
  token: {
    kind: 'text',
    value: 'token',
    summary: 'What opens it; better in REDRIVE_TOKEN, where no list of processes shows it.',
  },
  timeout: {
    kind: 'duration',
    value: 'time',
    default: 30_000,
    summary: 'How long to wait for an answer.',
  },
} as const satisfies OptionTable;

interface ClientOptions {
  url: string;
  token?: string;
  timeoutMs: number;
  /** Who asks, where no token says so: kept with what they do. */
  operator?: string;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** What a server says when it refuses: RFC 9457. */
interface Problem {
  status: number;
  code: string;
  title?: string;
  detail?: string;
  /** Whatever else it says: `faults`, `rejected`, `matches`. */
  [more: string]: unknown;
}

/** The server answered, and said no. */
export class ProblemError extends CommandError {
  readonly problem: Problem;
  /** As it asked for; absent: it did not. */
  readonly retryAfterMs?: number;

  constructor(message: string, exit: number, problem: Problem, retryAfterMs?: number) {
    super(message, { exit, code: problem.code });
    this.problem = problem;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}

/** What `--url`, `--token` and `--timeout` say, or the environment. */
export function clientOf(
  given: { url: string | undefined; token: string | undefined; timeout: number },
  { env, cwd }: Pick<Io, 'env' | 'cwd'>,
): Client {
  const url = given.url ?? (env['REDRIVE_URL'] || ownUrl(env, cwd));
  const token = checkedToken(given.token ?? (env['REDRIVE_TOKEN'] || undefined));
  const operator = env['USER'] ?? env['LOGNAME'] ?? env['USERNAME'];
  return new Client({
    url: checkedUrl(url),
    timeoutMs: given.timeout,
    ...(token === undefined ? {} : { token }),
    ...(operator === undefined ? {} : { operator }),
  });
}

const DEFAULT_PORT = 8086;

/**
 * The server of this machine, at the port that `redrive serve` would take here. Only the port is read from `.env`: a
 * whole URL there could send the token of the environment to another host.
 */
function ownUrl(env: Io['env'], cwd: string): string {
  const port = Number(env['HTTP_PORT'] || portInDotenv(cwd));
  const isPort = Number.isInteger(port) && port > 0 && port < 65_536;
  return `http://127.0.0.1:${isPort ? port : DEFAULT_PORT}`;
}

function portInDotenv(cwd: string): string | undefined {
  try {
    return parseEnv(readFileSync(join(cwd, '.env'), 'utf8'))['HTTP_PORT'];
  } catch {
    // Most folders have none, and redrive serve says what is wrong with one.
    return undefined;
  }
}

/** A page of a hundred tasks is some KiB; one payload may have 16 MiB, and a third more in base64. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const PAGE = 100;
/** A timer for longer would end at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class Client {
  readonly url: string;
  readonly #token: string | undefined;
  readonly #who: Readonly<Record<string, string>>;
  readonly #timeoutMs: number;
  #skewMs = 0;

  constructor({ url, token, timeoutMs, operator = '' }: ClientOptions) {
    this.url = url.replace(/\/+$/, '');
    this.#token = token;
    const isName = /^[\x21-\x7e]{1,64}$/.test(operator);
    if (token !== undefined) this.#who = { authorization: `Bearer ${token}` };
    else this.#who = isName ? { 'x-redrive-operator': operator } : {};
    this.#timeoutMs = Math.min(timeoutMs, MAX_TIMER_MS);
  }

  get(path: string, query: Query = {}): Promise<unknown> {
    return this.#ask('GET', path + queryOf(query));
  }

  post(
    path: string,
    body: unknown = {},
    headers: Readonly<Record<string, string>> = {},
    query: Query = {},
  ): Promise<unknown> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return this.#ask('POST', path + queryOf(query), text, headers);
  }

  put(path: string, body: unknown): Promise<unknown> {
    return this.#ask('PUT', path, JSON.stringify(body));
  }

  patch(path: string, body: unknown): Promise<unknown> {
    return this.#ask('PATCH', path, JSON.stringify(body));
  }

  delete(path: string, query: Query = {}): Promise<unknown> {
    return this.#ask('DELETE', path + queryOf(query));
  }

  /** An answer as what it has to be; of what is not, that is said. */
  as<T>(isExpected: Guard<T>, answer: unknown): T {
    if (isExpected(answer)) return answer;
    throw this.#notRedrive();
  }

  /** The items of a list, page by page, up to a limit. */
  async *items<T>(
    isOne: Guard<T>,
    path: string,
    query: Query,
    limit: number,
  ): AsyncGenerator<T, void, undefined> {
    const isPage = isPageOf(isOne);
    let left = limit;
    let cursor: string | undefined;
    do {
      const asked = { ...query, limit: Math.min(PAGE, left), cursor };
      const page = this.as(isPage, await this.get(path, asked));
      // It would never end.
      if (cursor !== undefined && page.next_cursor === cursor) throw this.#notRedrive();
      for (const item of page.items.slice(0, left)) yield item;
      left -= page.items.length;
      cursor = page.next_cursor ?? undefined;
    } while (left > 0 && cursor !== undefined);
  }

  /** Whether the server can do its work; also where it says that it cannot. */
  async ready(): Promise<ReadyView> {
    const response = await this.#fetch('GET', '/health/ready', undefined, {});
    this.#compareClocks(response.headers.get('date'));
    const text = await this.#textOf(response);
    const view = readJson(text);
    if (!isReady(view)) throw this.#notRedrive(response);
    return view;
  }

  /** The time as the server has it: what it says of times is relative to that. */
  nowMs(): number {
    return Date.now() + this.#skewMs;
  }

  async #ask(
    method: string,
    path: string,
    body?: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<unknown> {
    const response = await this.#fetch(method, path, body, headers);
    this.#compareClocks(response.headers.get('date'));
    const text = await this.#textOf(response);
    if (!response.ok) throw this.#problemOf(response, text);
    if (text === '') return undefined;
    try {
      return parseExactly(text);
    } catch (error) {
      throw this.#notRedrive(response, error);
    }
  }

  async #fetch(
    method: string,
    path: string,
    body: string | undefined,
    headers: Readonly<Record<string, string>>,
  ): Promise<Response> {
    try {
      return await fetch(this.url + path, {
        method,
        headers: {
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...this.#who,
          ...headers,
        },
        ...(body === undefined ? {} : { body }),
        // A token goes to the server that was named, and nowhere else.
        redirect: 'manual',
        signal: AbortSignal.timeout(this.#timeoutMs),
      });
    } catch (error) {
      throw this.#unavailable(error);
    }
  }

  async #textOf(response: Response): Promise<string> {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    try {
      for await (const chunk of response.body ?? []) {
        bytes += chunk.length;
        if (bytes > MAX_ANSWER_BYTES) break;
        chunks.push(chunk);
      }
    } catch (error) {
      throw this.#unavailable(error);
    }
    if (bytes > MAX_ANSWER_BYTES) {
      throw new CommandError(`The answer of ${this.url} is over 64 MiB. Ask for less: --limit.`, {
        code: 'ANSWER_TOO_LARGE',
      });
    }
    return Buffer.concat(chunks).toString('utf8');
  }

  #problemOf(response: Response, text: string): CommandError {
    const problem = readProblem(text, response.status);
    if (!problem) return this.#notRedrive(response);
    const { detail, title, code, status } = problem;
    const said = shown(detail ?? title ?? `It was refused with status ${status}.`);
    const faults = faultsOf(problem).map((fault) => `\n  ${fault}`);
    const what = faults.length > 0 ? `${said.replace(/\.$/, '')} (${shown(code)}):` : said;
    const hint = hintOf(status, this.#token !== undefined);
    const message = `${what}${faults.join('')}${hint === '' ? '' : `\n${hint}`}`;
    return new ProblemError(message, exitOf(status), { ...problem, code }, retryAfterOf(response));
  }

  #unavailable(error: unknown): CommandError {
    const why = reasonOf(error);
    const message =
      why === 'TIMEOUT'
        ? `${this.url} did not answer within ${this.#timeoutMs / 1000} s. Give it more with --timeout, or look at ${this.url}/health/ready.`
        : `${this.url} cannot be reached (${why}). Is it running? redrive serve starts it; --url or REDRIVE_URL says where it is.`;
    return new CommandError(message, {
      exit: exits.unavailable,
      code: 'UNAVAILABLE',
      cause: error,
    });
  }

  #notRedrive(response?: Response, cause?: unknown): CommandError {
    const status = response ? ` (status ${response.status})` : '';
    return new CommandError(
      `What answers at ${this.url}${status} is not Redrive, or another version of it. Is --url right, and nothing else on that port?`,
      { exit: exits.unavailable, code: 'NOT_REDRIVE', cause },
    );
  }

  /** The header has whole seconds: a difference of two is none. */
  #compareClocks(date: string | null): void {
    const skewMs = Date.parse(date ?? '') - Date.now();
    this.#skewMs = Math.abs(skewMs) > 2000 ? skewMs : 0;
  }
}

function checkedUrl(url: string): string {
  const { protocol } = URL.parse(url) ?? {};
  if (protocol === 'http:' || protocol === 'https:') return url;
  throw new CommandError(
    `'${shown(url)}' is not the URL of a server. Write it whole: --url http://127.0.0.1:8086`,
    { exit: exits.usage, code: 'USAGE' },
  );
}

/** What is no token is not shown: it may be part of one. */
function checkedToken(token: string | undefined): string | undefined {
  const trimmed = token?.trim();
  if (trimmed === undefined || /^[\x21-\x7e]+$/.test(trimmed)) return trimmed;
  throw new CommandError('The token has characters that no token has. redrive token makes one.', {
    exit: exits.usage,
    code: 'USAGE',
  });
}

function queryOf(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  if (given.length === 0) return '';
  return `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()}`;
}

function readProblem(text: string, status: number): Problem | undefined {
  const data = readJson(text);
  if (typeof data !== 'object' || data === null) return undefined;
  const { code, detail, title, ...more } = data as Record<string, unknown>;
  if (typeof code !== 'string') return undefined;
  return {
    ...more,
    ...(typeof title === 'string' ? { title } : {}),
    ...(typeof detail === 'string' ? { detail } : {}),
    status,
    code,
  };
}

/** Undefined for what is no JSON: the caller says what that means. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const MAX_FAULTS = 20;

/** Single faults of a request, as `path: message`. */
function faultsOf(problem: Problem): string[] {
  const { errors } = problem;
  if (!Array.isArray(errors)) return [];
  const faults = errors as Partial<Record<string, unknown>>[];
  // The only one may have been said already, as what it all comes to.
  const [only] = faults;
  if (faults.length === 1 && only?.['message'] === problem.detail) return [];
  return faults.slice(0, MAX_FAULTS).map((fault) => {
    const { path, message } = Object(fault) as typeof fault;
    const said = typeof message === 'string' ? message : JSON.stringify(fault);
    return shown(typeof path === 'string' && path !== '' ? `${path}: ${said}` : said);
  });
}

function exitOf(status: number): number {
  if (status === 401 || status === 403) return exits.notAllowed;
  if (status === 429 || status === 502 || status === 503 || status === 504)
    return exits.unavailable;
  return exits.failed;
}

function hintOf(status: number, hasToken: boolean): string {
  if (status === 401 && !hasToken)
    return 'Give a token: REDRIVE_TOKEN, or --token. redrive token makes one.';
  if (status === 401)
    return 'This token is not known there: REDRIVE_TOKENS of the server has the hashes of those that are.';
  if (status === 403) return 'This token has a role that does not allow it.';
  return '';
}

function retryAfterOf({ headers }: Response): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? NaN);
  return seconds >= 0 ? seconds * 1000 : undefined;
}

/** `fetch` hides why it failed in the cause, and there in the first of several. */
function reasonOf(error: unknown): string {
  const seen = new Set<unknown>();
  let said = 'no connection';
  for (let one = error; typeof one === 'object' && one !== null && !seen.has(one);) {
    seen.add(one);
    const { name, message, code, cause, errors } = one as {
      name?: string;
      message?: string;
      code?: unknown;
      cause?: unknown;
      errors?: unknown[];
    };
    if (name === 'TimeoutError') return 'TIMEOUT';
    if (typeof code === 'string') return code;
    if (message) said = shown(message);
    one = cause ?? errors?.[0];
  }
  return said;
}
