/** The door of the gateway: who may come in, how many at once, and the end of all of them at a stop. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Router } from 'redrive';
import { hostFault } from '../http/host.ts';
import { Problem, problemOf } from '../http/problem.ts';
import type { Settings } from '../settings/settings.ts';
import type { Answer, WholeAnswer } from './answer.ts';
import { type Finished, GatewayCall } from './gateway-call.ts';
import { createGatewayGuard } from './gateway-guard.ts';
import type { GatewayRequest } from './provider-call.ts';
import { KeptBodies } from './request-body.ts';
import { parseTarget } from './request-target.ts';

export type GatewayRouter = Router<GatewayRequest, Answer | WholeAnswer>;

interface GatewayOptions {
  /** `has`: there is a file of that policy, good or bad. */
  routers: { get(policyId: string): GatewayRouter | undefined; has(policyId: string): boolean };
  tokens: Settings['tokens'];
  /** The largest body that is kept for a retry. */
  maxKeptBytes: number;
  /** Requests under way at once. */
  concurrency: number;
  /** How long a client may take between two pieces of its body, or of the answer. */
  idleMs: number;
  log: Pick<Logger, 'debug' | 'info' | 'error' | 'isLevelEnabled'>;
  finished?: (finished: Finished) => void;
}

export class Gateway {
  readonly #options: GatewayOptions;
  readonly #guard: (request: IncomingMessage) => string;
  readonly #bodies: KeptBodies;
  readonly #parts: ConstructorParameters<typeof GatewayCall>[0];
  /**
   * A list, since a set would leave its outgrown tables behind. Each is linked to the next, so they keep every request in
   * memory until the next full garbage collection.
   */
  readonly #calls: GatewayCall[] = [];
  #isStopping = false;
  #onEmpty: (() => void) | undefined;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#guard = createGatewayGuard(options);
    this.#bodies = new KeptBodies(options.maxKeptBytes);
    const { idleMs, log, finished } = options;
    this.#parts = { idleMs, log, finished, bodies: this.#bodies };
  }

  /** Requests under way. */
  get running(): number {
    return this.#calls.length;
  }

  /** What is held for retries. */
  get keptBytes(): number {
    return this.#bodies.bytes;
  }

  /** Answers every request, whatever it is. `refused`: the service has no room for it. */
  handle(request: IncomingMessage, response: ServerResponse, refused?: Problem): void {
    const call = new GatewayCall(this.#parts, request, response);
    call.place = this.#calls.push(call) - 1;
    void this.#serve(call, request, refused);
  }

  /** Refuses what comes, and waits for what is under way. What is not over after that long is cut off. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    if (this.#calls.length === 0) return;
    await new Promise<void>((resolve) => {
      const limit = setTimeout(resolve, graceMs);
      this.#onEmpty = () => {
        clearTimeout(limit);
        resolve();
      };
    });
    for (const call of this.#calls) call.cut();
  }

  async #serve(call: GatewayCall, request: IncomingMessage, full?: Problem): Promise<void> {
    try {
      if (full) throw full;
      const { by, router, rest, policyId } = this.#admit(request);
      await call.run({ by, router, rest, policyId });
    } catch (error) {
      const problem = problemOf(error);
      if (problem.code === 'INTERNAL') {
        this.#options.log.error({ err: problem.cause }, 'the gateway could not serve a request');
      }
      call.refuse(problem);
    } finally {
      this.#remove(call);
    }
  }

  /** The last of the list takes its place. */
  #remove(call: GatewayCall): void {
    const last = this.#calls.pop()!;
    if (last !== call) {
      this.#calls[call.place] = last;
      last.place = call.place;
    }
    if (this.#calls.length === 0) this.#onEmpty?.();
  }

  #admit(request: IncomingMessage): {
    by: string;
    router: GatewayRouter;
    policyId: string;
    rest: string;
  } {
    const { routers, concurrency } = this.#options;
    if (this.#isStopping) throw new Problem('STOPPING', 'The service stops. Ask again soon.');
    const fault = hostFault(request);
    if (fault !== undefined) throw new Problem('MALFORMED_REQUEST', fault);
    const by = this.#guard(request);
    if (this.#calls.length > concurrency) {
      const detail = `${concurrency} requests are under way. Ask again soon, or raise ROUTING_GATEWAY_CONCURRENCY.`;
      throw new Problem('GATEWAY_BUSY', detail);
    }
    // Clients of HTTP/2 offer it like this, and go on without an answer to the offer.
    const upgrade = request.headers.upgrade?.toLowerCase();
    if (upgrade !== undefined && upgrade !== 'h2c') {
      throw new Problem(
        'UPGRADE_NOT_SUPPORTED',
        'The gateway passes on requests, no other protocol.',
      );
    }
    const coding = request.headers['transfer-encoding'];
    if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
      const detail = `The body has the transfer-encoding '${coding.slice(0, 80)}'. Only chunked is understood.`;
      throw new Problem('MALFORMED_REQUEST', detail);
    }
    const target = parseTarget(request.url ?? '');
    if ('fault' in target) throw new Problem('UNSAFE_PATH', target.fault);
    const { policyId, rest } = target;
    const router = routers.get(policyId);
    if (!router) {
      const why = routers.has(policyId) ? ', since its file or providers.json has a fault' : '';
      const detail = `There is no routing policy '${policyId}' that can be used${why}. GET /api/v1/route/policies lists them.`;
      throw new Problem('ROUTE_POLICY_UNKNOWN', detail);
    }
    return { by, router, policyId, rest };
  }
}
