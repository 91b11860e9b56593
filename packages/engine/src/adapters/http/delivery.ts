/** Delivers tasks to `http://` and `https://` URLs. */
import type { TaskFault } from '../../errors.ts';
import type { Delivery, Outcome, Run } from '../../ports/delivery.ts';
import { remember } from '../../model/remember.ts';
import type { Destination, Task, TaskContext } from '../../model/task.ts';
import type { Allowed } from './allow.ts';
import { bytesToRead } from './answer.ts';
import type { Connections } from './connections.ts';
import { exchange, type Message, worked } from './exchange.ts';
import { connectionsOf, refusedHost } from './guarded-connections.ts';
import { checkContext, hasBody, methodOf, requestHeaders } from './headers.ts';
import { Limit } from './limit.ts';
import { type HttpOptions, readOptions } from './options.ts';
import { answeredOutcome, brokenOutcome, endedOutcome, failed, invalidOutcome } from './outcome.ts';
import { type Credentials, findSecret, pattern, type Secrets } from './secrets.ts';
import { Slots } from './slots.ts';
import { checkUrl } from './url.ts';

/** A delivery to HTTP destinations. Options that cannot work are a `ConfigError`. */
export function http(options?: HttpOptions): Required<Delivery> {
  return new HttpDelivery(options);
}

class HttpDelivery implements Required<Delivery> {
  readonly kind = 'http';
  readonly handsOver = false;
  readonly #allowed: Allowed;
  readonly #secrets: Secrets | undefined;
  readonly #slots: Slots;
  readonly #connections: Connections;
  #closed = false;

  constructor(options?: HttpOptions) {
    const settings = readOptions(options);
    const { allowed, secrets, maxConnections, maxConnectionsPerOrigin } = settings;
    this.#allowed = allowed;
    this.#secrets = secrets;
    this.#slots = new Slots(maxConnections, maxConnectionsPerOrigin);
    this.#connections = connectionsOf(settings);
  }

  check({ address }: Destination, context: TaskContext | undefined): TaskFault[] {
    const fault = this.#checkAddress(address);
    return [...(fault ? [{ ...fault }] : []), ...checkContext(context)];
  }

  async deliver(task: Task, run: Run): Promise<Outcome> {
    const { context, destination } = task;
    const [fault] = [checkUrl(destination.address) ?? [], checkContext(context)].flat();
    if (fault) return invalidOutcome(`${fault.path}: ${fault.message}`);
    const url = new URL(destination.address);
    const refused = refusedHost(this.#allowed, url);
    if (refused) return brokenOutcome(refused, url.origin, false, undefined);

    const limit = new Limit(run);
    try {
      let credentials: Credentials | undefined;
      if (context?.secret !== undefined) {
        const found = await limit.race(findSecret(this.#secrets, context.secret, url.origin));
        if (!found) return endedOutcome(limit.ended ?? 'timeout', url.origin, false);
        if ('failure' in found) return failed(found.failure);
        credentials = found.credentials;
      }
      if (!this.#slots.take(url.origin) && !(await this.#slot(url.origin, limit))) {
        return noSlot(limit, url.origin);
      }
      try {
        return await this.#send(task, run, url, limit, credentials);
      } finally {
        this.#slots.release(url.origin);
      }
    } finally {
      limit.free();
    }
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#connections.close();
    return Promise.resolve();
  }

  readonly #checkAddress = remember(
    (address) => checkUrl(address) ?? this.#checkHost(new URL(address)),
  );

  #checkHost(url: URL): TaskFault | undefined {
    const refused = refusedHost(this.#allowed, url);
    return refused && { path: 'to', code: refused.code, message: refused.message };
  }

  /** Waits for a slot; false: the limit ended first. */
  #slot(origin: string, limit: Limit): Promise<boolean> {
    if (limit.ended) return Promise.resolve(false);
    return new Promise((resolve) => {
      const granted = (): void => {
        limit.onEnd = undefined;
        resolve(true);
      };
      limit.onEnd = () => {
        this.#slots.leave(origin, granted);
        resolve(false);
      };
      this.#slots.wait(origin, granted);
    });
  }

  async #send(
    task: Task,
    run: Run,
    url: URL,
    limit: Limit,
    credentials: Credentials | undefined,
  ): Promise<Outcome> {
    if (this.#closed) return closed;
    if (limit.ended) return endedOutcome(limit.ended, url.origin, false);
    const method = methodOf(task.context);
    const texts = credentials?.texts ?? [];
    const message: Message = {
      url,
      method,
      headers: requestHeaders(task, run, url, credentials?.headers),
      body: hasBody(method) ? task.payload : undefined,
      keepBytes: bytesToRead(texts),
    };
    const exchanged = await exchange(this.#connections, message, limit);
    switch (exchanged.type) {
      case 'answered':
        if (worked(exchanged.status)) return done;
        return answeredOutcome(exchanged, url, Date.now(), pattern(texts));
      case 'broken': {
        const { error, reached, reused } = exchanged;
        const outcome = brokenOutcome(error, url.origin, reached, pattern(texts));
        if (!reused || !wasCut(error)) return outcome;
        // A server may close an idle connection just as the next request is on its way. That says nothing of
        // the task, and the next connection is a new one.
        this.#connections.dropIdle(url.origin);
        return failed({ ...outcome.failure, counted: false });
      }
      case 'ended':
        return endedOutcome(limit.ended ?? 'timeout', url.origin, exchanged.reached);
    }
  }
}

const done: Outcome = Object.freeze({ type: 'done' });

const closed: Outcome = failed({
  class: 'transient',
  code: 'DELIVERY_CLOSED',
  message: 'The HTTP delivery was closed.',
  notExecuted: true,
  counted: false,
});

/** Our own limit, not a failure of the task: it consumes nothing. */
function noSlot(limit: Limit, origin: string): Outcome {
  if (limit.ended === 'abort') return endedOutcome('abort', origin, false);
  return failed({
    class: 'transient',
    code: 'NO_CONNECTION_FREE',
    message: `Too many deliveries at once: none of the connections for ${origin} became free in time. Raise maxConnections or maxConnectionsPerOrigin, or lower the lane's concurrency.`,
    notExecuted: true,
    counted: false,
  });
}

function wasCut(error: unknown): boolean {
  const { code } = Object(error) as { code?: unknown };
  return code === 'ECONNRESET' || code === 'EPIPE';
}
