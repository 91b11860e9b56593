/** One request through the gateway: its body in, the router's call, the answer out. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { isRouteError, type RouteContext, type RouteError, type RouteResult } from 'redrive';
import { securityHeaders } from '../http/limits/limits.ts';
import { Problem, PROBLEM_TYPE } from '../http/problem.ts';
import { Answer, type AnswerPart, Preamble, type WholeAnswer } from './answer.ts';
import type { GatewayRouter } from './gateway.ts';
import type { GatewayRequest } from './provider-call.ts';
import { CLIENT_STALLED, ProviderFailure } from './provider-failure.ts';
import { isStalled, type KeptBodies, type RequestBody } from './request-body.ts';
import { type Routed, routeHeaders } from './route-headers.ts';
import { routeProblem } from './route-problem.ts';

/**
 * How a request ended. `answered`: a provider's answer, whole. `failed`: no provider had one that counts as good. `cut`: the
 * answer broke off. `client_gone`: the client did. `refused`: it was not routed.
 */
type Outcome = 'answered' | 'failed' | 'cut' | 'client_gone' | 'refused';

export interface Finished {
  outcome: Outcome;
  /** Undefined for a request that was refused before its policy was known. */
  policy: string | undefined;
  provider: string | undefined;
  status: number;
  attempts: readonly { provider: string; status: string }[];
  firstByteMs: number | undefined;
  tookMs: number;
}

interface Parts {
  bodies: KeptBodies;
  idleMs: number;
  log: Pick<Logger, 'debug' | 'info' | 'isLevelEnabled'>;
  finished: ((finished: Finished) => void) | undefined;
}

interface Admitted {
  by: string;
  router: GatewayRouter;
  policyId: string;
  rest: string;
}

export class GatewayCall {
  /** Where it stands in the list of calls under way. */
  place = 0;
  readonly #parts: Parts;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #startMs = performance.now();
  readonly #leaving = new AbortController();
  #body: RequestBody = { kind: 'none' };
  #admitted: Admitted | undefined;
  #routed: Routed = { attempts: [] };
  #firstByteMs: number | undefined;
  /** Waiting for the client: to send its body, or to take the answer. */
  #isClientsTurn = false;
  #isTold = false;
  #isBodyBegun = false;

  constructor(parts: Parts, request: IncomingMessage, response: ServerResponse) {
    this.#parts = parts;
    this.#request = request;
    this.#response = response;
    response.on('close', () => {
      if (!response.writableFinished) this.#leaving.abort(new ClientGone());
    });
    // Nobody else listens, and a response that cannot be written is told by its `close`.
    response.on('error', () => undefined);
    request.on('error', () => undefined);
    // Not of the request: Node tells it nothing once it has come in whole, and destroys a socket that nobody minds.
    response.on('timeout', () => this.#idle());
    request.socket.setTimeout(parts.idleMs);
  }

  /** Ends with an answer, or with a connection that is destroyed. Rejects before the first byte went out. */
  async run(admitted: Admitted): Promise<void> {
    this.#admitted = admitted;
    const { bodies } = this.#parts;
    this.#isClientsTurn = true;
    const body = await bodies.read(this.#request, this.#leaving.signal);
    this.#isClientsTurn = false;
    if (!body) return this.#end('client_gone');
    this.#body = body;
    try {
      await this.#route(admitted);
    } finally {
      bodies.free(body);
    }
  }

  async #route({ router, by, rest }: Admitted): Promise<void> {
    const request = this.#request;
    const { method = 'GET', rawHeaders, headers } = request;
    const input: GatewayRequest = {
      method,
      rest,
      rawHeaders,
      contentType: headers['content-type'],
      // An empty one protects nobody.
      hasIdempotencyKey: /\S/.test(String(headers['idempotency-key'] ?? '')),
      body: this.#body,
      wasReached: false,
    };
    let result: RouteResult<unknown>;
    try {
      const { signal } = this.#leaving;
      result = await router.call(input, contextOf(request, router, by), { signal });
    } catch (error) {
      const isGone = this.#leaving.signal.aborted;
      if (isGone && isRouteError(error)) dropAnswer(error);
      if (isGone) return this.#end('client_gone');
      if (!isRouteError(error)) throw error;
      return this.#giveUp(error);
    }
    const { attempts, explanation, provider } = result;
    this.#routed = { attempts, explanation, provider };
    const answer = result.value as WholeAnswer | AsyncIterableIterator<AnswerPart>;
    if ('bytes' in answer) this.#passWhole(answer, 'answered', []);
    else await this.#pass(answer, 'answered', []);
  }

  /** The answer of the last provider is passed on where there is one. */
  async #giveUp(error: RouteError): Promise<void> {
    const { attempts, explanation } = error;
    this.#routed = { attempts, explanation };
    const answer = failedAnswer(error);
    // A client that retries by itself would multiply what was retried here.
    const stop = ['x-should-retry', 'false'];
    if (answer instanceof Answer) await this.#pass(answer.again(), 'failed', stop);
    else if (answer) this.#passWhole(answer, 'failed', stop);
    else if (attempts.at(-1)?.status === CLIENT_STALLED) this.#refuse(tooSlow(), 'failed', stop);
    else this.#refuse(routeProblem(error), 'failed', stop);
  }

  #passWhole(answer: WholeAnswer, outcome: Outcome, more: readonly string[]): void {
    this.#writeHead(answer, more);
    this.#response.end(answer.bytes);
    this.#end(this.#response.destroyed ? 'client_gone' : outcome);
  }

  async #pass(
    parts: AsyncIterableIterator<AnswerPart, unknown>,
    outcome: Outcome,
    more: readonly string[],
  ): Promise<void> {
    const response = this.#response;
    try {
      for await (const part of parts) {
        if (part instanceof Answer) this.#writeHead(part, more);
        else {
          this.#isBodyBegun = true;
          const isTaken = response.write(part instanceof Preamble ? part.bytes : part);
          if (!isTaken) await this.#drained();
        }
        if (response.destroyed) break;
      }
      this.#isBodyBegun = true;
    } catch (error) {
      if (!response.headersSent) throw error;
      // The client must not take what it has for the whole.
      this.#request.socket.destroy();
      return this.#end(this.#leaving.signal.aborted ? 'client_gone' : 'cut');
    }
    response.end();
    this.#end(response.destroyed ? 'client_gone' : outcome);
  }

  #writeHead(answer: Answer | WholeAnswer, more: readonly string[]): void {
    const { status, passed } = answer;
    this.#firstByteMs = performance.now() - this.#startMs;
    const replaced = more.length > 0;
    const kept = replaced ? without(passed, more[0]!) : passed;
    const headers = [...kept, ...routeHeaders(this.#routed), ...more];
    // What is left of a body that nobody reads would be taken for the next request.
    if (!this.#request.complete) headers.push('connection', 'close');
    const response = this.#response;
    response.writeHead(status, headers);
    // With the first bytes of the body where they are there already, which saves a packet; else now.
    if (!(answer instanceof Answer) || answer.isMoreHere) return;
    setImmediate(() => {
      if (!this.#isBodyBegun && !response.destroyed) response.flushHeaders();
    });
  }

  /** Answers with a problem what was not routed. */
  refuse(problem: Problem): void {
    this.#refuse(problem, 'refused', []);
  }

  /** The service stops. */
  cut(): void {
    this.#request.socket.destroy();
  }

  #refuse(problem: Problem, outcome: Outcome, more: readonly string[]): void {
    const response = this.#response;
    if (response.headersSent || response.destroyed) {
      this.#request.socket.destroy();
      return this.#end('client_gone');
    }
    const { code, message } = problem;
    // Clients of LLM providers look for the message here.
    const error = { message, type: 'redrive_gateway', code };
    const text = JSON.stringify({ ...(JSON.parse(problem.toText()) as object), error });
    const isRouted = outcome !== 'refused';
    const headers: Record<string, string | number> = {
      ...securityHeaders,
      ...problem.headers,
      'content-type': PROBLEM_TYPE,
      'content-length': Buffer.byteLength(text),
    };
    if (!this.#request.complete) headers['connection'] = 'close';
    const list = [...(isRouted ? routeHeaders(this.#routed) : []), ...more];
    response.writeHead(problem.status, [...Object.entries(headers).flat().map(String), ...list]);
    response.end(this.#request.method === 'HEAD' ? undefined : text);
    this.#end(outcome);
  }

  /** Until the client has taken what was written, or is gone. */
  #drained(): Promise<void> {
    const response = this.#response;
    this.#isClientsTurn = true;
    return new Promise((resolve) => {
      const end = () => {
        response.off('drain', end).off('close', end);
        this.#isClientsTurn = false;
        resolve();
      };
      response.on('drain', end).on('close', end);
      if (response.destroyed) end();
    });
  }

  /** Nothing came from the client and nothing was taken by it for as long as is allowed. */
  #idle(): void {
    const { socket } = this.#request;
    if (!this.#isClientsTurn && !isStalled(this.#body)) {
      // The provider has its own limits. Node stops watching a socket that was idle once.
      socket.setTimeout(this.#parts.idleMs);
    } else if (this.#response.headersSent) socket.destroy();
    else {
      this.#leaving.abort(new ClientGone());
      this.refuse(tooSlow());
      socket.destroySoon();
    }
  }

  #end(outcome: Outcome): void {
    if (this.#isTold) return;
    this.#isTold = true;
    // All that is left is what the client has not taken yet.
    this.#isClientsTurn = true;
    const { log, finished } = this.#parts;
    const { attempts, provider } = this.#routed;
    const told: Finished = {
      outcome,
      policy: this.#admitted?.policyId,
      provider: provider ?? attempts.at(-1)?.provider,
      status: this.#response.headersSent ? this.#response.statusCode : 0,
      attempts: attempts.map((one) => ({
        provider: one.provider,
        status: one.status ?? one.outcome,
      })),
      firstByteMs: this.#firstByteMs,
      tookMs: performance.now() - this.#startMs,
    };
    finished?.(told);
    const isPlain = outcome === 'answered' && attempts.length === 1;
    const level = isPlain ? 'debug' : 'info';
    if (log.isLevelEnabled(level)) log[level](this.#logged(told), 'gateway request');
  }

  /** No headers, no query, no body: there may be secrets in them. */
  #logged({ attempts, firstByteMs, tookMs, ...told }: Finished): object {
    const path = (this.#admitted?.rest ?? '').split('?', 1)[0]!.slice(0, 200);
    return {
      ...told,
      method: this.#request.method,
      path,
      by: this.#admitted?.by,
      attempts: attempts.map(({ provider, status }) => `${provider} ${status}`),
      ...(firstByteMs === undefined ? {} : { first_byte_ms: Math.round(firstByteMs) }),
      took_ms: Math.round(tookMs),
    };
  }
}

class ClientGone extends Error {
  override readonly name = 'AbortError';

  constructor() {
    super('The client went away.');
  }
}

function tooSlow(): Problem {
  return new Problem('REQUEST_TIMEOUT', 'The body of the request took too long to come in.');
}

/** What the routing rules and sticky sessions may look at. */
function contextOf(
  { headers }: IncomingMessage,
  { policy }: GatewayRouter,
  by: string,
): RouteContext {
  const context: RouteContext = { tenant_id: headerText(headers['x-redrive-tenant']) ?? by };
  const requestId = headerText(headers['x-redrive-request-id']);
  if (requestId !== undefined) context.request_id = requestId;
  const session = headerText(headers['x-redrive-session']);
  if (session !== undefined && policy.sticky.enabled) context[policy.sticky.sessionKey] = session;
  const traceId = /^[\da-f]{2}-([\da-f]{32})-/.exec(String(headers['traceparent'] ?? ''))?.[1];
  if (traceId !== undefined) context.trace_id = traceId;
  return context;
}

const MAX_TEXT = 256;

function headerText(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, MAX_TEXT) : undefined;
}

function failedAnswer({ result, cause }: RouteError): Answer | WholeAnswer | undefined {
  if (result !== undefined) return result as Answer | WholeAnswer;
  return cause instanceof ProviderFailure ? cause.answer : undefined;
}

/** Of a client that left while the next attempt was waited for: its connection would never be given back. */
function dropAnswer({ result, attempts }: RouteError): void {
  const last = result ?? attempts.at(-1)?.error;
  if (last instanceof Answer || last instanceof ProviderFailure) last[Symbol.dispose]();
}

/** A flat list without the headers of that name. */
function without(headers: readonly string[], name: string): string[] {
  return headers.filter((_, i) => headers[i - (i % 2)]?.toLowerCase() !== name);
}
