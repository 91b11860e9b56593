/** A Cyoda calculation member: joins, serves, and joins again for as long as it is wanted. */
import type { Logger } from 'pino';
import { type Clock, type Policy, retry } from 'redrive';
import { systemClock } from 'redrive/internal';
import type { Evaluator } from '../criteria/evaluator.ts';
import type { Outcome } from './calculate.ts';
import type { TlsOptions } from './connection.ts';
import { Session, type SessionEnd } from './session.ts';
import { grpcStreams, type OpenStream } from './stream.ts';
import type { TokenSource } from './token.ts';
import { CyodaError, type CyodaErrorCode } from './trouble.ts';

interface CyodaMemberOptions {
  /** `grpc://host:9090`, or `grpcs://` for TLS. */
  readonly url: string;
  /** Asked before every join. */
  readonly tokenSource: TokenSource;
  readonly tags: readonly string[];
  readonly legalEntity?: string | undefined;
  readonly evaluator: Evaluator;
  readonly log: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;
  readonly clock?: Clock | undefined;
  readonly tls?: TlsOptions;
  /** Counts joins and requests. */
  readonly observer?: MemberObserver | undefined;
}

export interface MemberObserver {
  /** `result` is `joined`, or the code of what kept it from joining or ended the stream. */
  joined(result: 'joined' | CyodaErrorCode): void;
  /** Requests by what became of them. */
  requests(outcome: Outcome, count: number): void;
}

export interface MemberState {
  readonly status: 'stopped' | 'joining' | 'joined' | 'waiting' | 'stopping';
  /** What the server calls this member, while it is joined. */
  readonly memberId?: string;
  /** Why it is not joined. */
  readonly trouble?: { readonly code: CyodaErrorCode; readonly message: string };
}

export interface CyodaMember {
  start(): void;
  /** Answers what has come, then leaves. Safe to call again, and before the start. */
  stop(): Promise<void>;
  readonly state: MemberState;
}

const policy: Policy = {
  maxAttempts: 1_000_000_000,
  base: '1s',
  cap: '30s',
  multiplier: 2,
  jitter: 'full',
  retryOn: ['any'],
};
/** After a refusal: a token may be renewed, a setting of the server corrected. */
const REFUSED_MS = 30_000;
/** A stream that served this long was healthy. The next failure counts as the first one. */
const STEADY_MS = 10_000;

export function createCyodaMember(options: CyodaMemberOptions): CyodaMember {
  return new Member(options);
}

class Member implements CyodaMember {
  readonly #options: CyodaMemberOptions;
  readonly #clock: Clock;
  readonly #open: OpenStream;
  readonly #stopping = new AbortController();
  #state: MemberState = { status: 'stopped' };
  #session: { session: Session; over: Promise<SessionEnd> } | undefined;
  #running: Promise<void> | undefined;

  constructor(options: CyodaMemberOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#open = grpcStreams(options.url, options.tls);
  }

  get state(): MemberState {
    return this.#state;
  }

  start(): void {
    if (this.#isStopping) return;
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    if (!this.#isStopping) {
      this.#state = { status: 'stopping' };
      this.#session?.session.drain();
    }
    await this.#session?.over;
    // Not earlier: the abort ends the retry loop, and the draining stream runs inside of it.
    this.#stopping.abort();
    await this.#running;
    this.#state = { status: 'stopped' };
  }

  get #isStopping(): boolean {
    return this.#state.status === 'stopping' || this.#stopping.signal.aborted;
  }

  async #run(): Promise<void> {
    let lost: CyodaError | undefined;
    while (!this.#isStopping) {
      try {
        lost = await this.#serveWithRetries(lost);
      } catch (error) {
        // Every other error is retried, so this one is the abort of the stop.
        if (this.#isStopping) return;
        throw error;
      }
    }
  }

  /**
   * Resolves when a healthy stream was lost. That loss is the first failure of the next call, so the first rejoin is delayed
   * with jitter too: not all members come back at once.
   */
  #serveWithRetries(lost: CyodaError | undefined): Promise<CyodaError | undefined> {
    return retry(
      async ({ attempt }) => {
        if (attempt === 1 && lost) throw lost;
        const end = await this.#serve();
        if (end.type === 'drained') return undefined;
        this.#options.observer?.joined(end.error.code);
        if (end.servedMs >= STEADY_MS) return end.error;
        throw end.error;
      },
      policy,
      {
        clock: this.#clock,
        signal: this.#stopping.signal,
        classify: (error) =>
          error instanceof CyodaError && error.isRefusal
            ? { class: 'transient', code: error.code, retryAfterMs: REFUSED_MS }
            : 'transient',
        on: { wait: ({ error, attempt, delayMs }) => this.#wait(error, attempt, delayMs) },
      },
    );
  }

  /** One stream, from its token to its end. */
  async #serve(): Promise<SessionEnd> {
    const { url, tokenSource, tags, legalEntity, evaluator, log, observer } = this.#options;
    this.#setState({ ...this.#state, status: 'joining' });
    let token: string | undefined;
    try {
      token = await tokenSource();
    } catch (error) {
      if (!(error instanceof CyodaError)) throw error;
      return { type: 'lost', error, servedMs: 0 };
    }
    if (this.#isStopping) return { type: 'drained' };
    const session = new Session({
      url,
      open: this.#open,
      token,
      join: { tags, legalEntity },
      evaluator,
      clock: this.#clock,
      log,
      onJoined: (memberId, joinedEntity) => {
        this.#setState({ status: 'joined', memberId });
        observer?.joined('joined');
        const fields = { url, member_id: memberId, legal_entity: joinedEntity, tags };
        log.info(fields, 'joined the Cyoda server');
      },
      onOutcome: (outcome, count) => observer?.requests(outcome, count),
    });
    const over = session.run();
    this.#session = { session, over };
    const end = await over;
    this.#session = undefined;
    return end;
  }

  #wait(error: unknown, attempt: number, delayMs: number): void {
    if (!(error instanceof CyodaError)) {
      this.#options.log.error({ err: error, attempt, delay_ms: delayMs }, 'the member failed');
      return;
    }
    const { code, message, isRefusal } = error;
    this.#setState({ status: 'waiting', trouble: { code, message } });
    const fields = { code, attempt, delay_ms: delayMs };
    if (isRefusal) this.#options.log.error(fields, message);
    else this.#options.log.warn(fields, message);
  }

  #setState(state: MemberState): void {
    if (!this.#isStopping) this.#state = state;
  }
}
