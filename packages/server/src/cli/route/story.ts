/** A failure story: which calls of which provider fail, and what a router makes of it, on a virtual clock. */
import {
  createRouter,
  isRouteError,
  type ProviderHealth,
  type RouteAttempt,
  type RouteAttemptRecord,
  type RouteContext,
  type RouteProvider,
  type RoutingPolicy,
} from 'redrive';
import { didYouMean, durationMs, nearest } from 'redrive/internal';
import { virtualClock } from 'redrive/testing';
import { usageError } from '../inputs.ts';
import { shown } from '../terminal/safe-text.ts';

/** How one call of a provider ends. */
interface Step {
  status: string;
  /** What the provider asks for with a failure. */
  retryAfterMs?: number;
}

/** By provider: its calls in order. Calls after the last step work. */
type Script = ReadonlyMap<string, readonly Step[]>;

interface StoryOptions {
  context: RouteContext;
  seed: number;
  /** How long a call takes that does not time out. */
  latencyMs: number;
  requests: number;
  /** Between the starts of two requests. */
  everyMs: number;
  deadlineMs: number | undefined;
  hedgeAfterMs: number | undefined;
  skipWaits: boolean;
}

/** One request of a story. Times are ms since the story began. */
export interface Told {
  requestId: string;
  startedAtMs: number;
  endedAtMs: number;
  /** The provider that answered; undefined: none did. */
  provider: string | undefined;
  /** Why none did. */
  error: { code: string; message: string } | undefined;
  attempts: readonly RouteAttemptRecord[];
}

export interface Story {
  requests: readonly Told[];
  health: Readonly<Record<string, ProviderHealth>>;
}

const MAX_STEPS = 1000;
/** A call that times out where the policy has no timeout_ms. */
const USUAL_TIMEOUT_MS = 5000;
/** Stories begin at this moment, so that the same command always tells the same. */
const START_MS = Date.UTC(2030, 0, 1);

/** `primary:timeout,503,429@2s,ok`, for each provider once. */
export function readScript(texts: readonly string[], policy: RoutingPolicy): Script {
  const names = policy.providers.map(({ name }) => name);
  const script = new Map<string, readonly Step[]>();
  for (const text of texts) {
    const at = text.indexOf(':');
    const name = at < 0 ? text : text.slice(0, at);
    const steps = at < 0 ? '' : text.slice(at + 1);
    if (!policy.hasProvider(name)) {
      const known = names.slice(0, 20).join(', ');
      throw usageError(
        `--fail ${shown(text)}: '${shown(name)}' is not a provider of the policy. It has: ${known}.${didYouMean(nearest(name, names))}`,
      );
    }
    if (script.has(name))
      throw usageError(`--fail: ${name} is there twice. Write its statuses in one list.`);
    script.set(name, readSteps(text, steps, policy));
  }
  return script;
}

/** What routers and gateways call failures. A policy may have words of its own. */
const usualStatuses = ['ok', 'timeout', 'connection_error', 'rate_limit', 'cancelled'];

function readSteps(text: string, list: string, policy: RoutingPolicy): Step[] {
  const words = [...usualStatuses, ...statusesIn(policy)];
  const steps = list.split(',').map((step) => step.trim());
  if (steps.length > MAX_STEPS) throw usageError(`--fail: at most ${MAX_STEPS} statuses.`);
  return steps.map((step) => {
    const [status = '', wait, ...more] = step.split('@');
    if (!/^[\w-]{1,64}$/.test(status) || more.length > 0) {
      throw usageError(
        `--fail ${shown(text)}: '${shown(step)}' is not a status. Write provider:status,status with statuses such as timeout, connection_error, rate_limit, 503, ok; 429@2s asks for a pause.`,
      );
    }
    const near = words.includes(status) ? undefined : nearest(status, words);
    if (near !== undefined && !/^\d/.test(status)) {
      throw usageError(
        `--fail ${shown(text)}: no rule of the policy names '${shown(status)}'.${didYouMean(near)}`,
      );
    }
    return wait === undefined ? { status } : { status, retryAfterMs: readWait(text, wait) };
  });
}

function statusesIn({ rules }: RoutingPolicy): string[] {
  const conditions = rules.flatMap(({ when }) => when);
  return conditions.flatMap(([key, values]) => (key === 'status' ? values.map(String) : []));
}

function readWait(text: string, wait: string): number {
  const ms = durationMs(wait);
  if (!Number.isNaN(ms)) return ms;
  throw usageError(`--fail ${shown(text)}: '${shown(wait)}' is no time such as 500ms or 2s.`);
}

/** Tells the story. Requests start at their time, whether the one before has ended or not. */
export async function tellStory(
  policy: RoutingPolicy,
  script: Script,
  options: StoryOptions,
): Promise<Story> {
  const clock = virtualClock(START_MS);
  const { latencyMs, deadlineMs, hedgeAfterMs, skipWaits, seed } = options;
  const turns = new Map<string, number>();
  const provider =
    (name: string): RouteProvider<unknown> =>
    async (_, attempt) => {
      const turn = turns.get(name) ?? 0;
      turns.set(name, turn + 1);
      const step = script.get(name)?.[turn] ?? { status: 'ok' };
      const isHung = step.status === 'timeout';
      const hungMs = policy.timeoutMs === undefined ? USUAL_TIMEOUT_MS : Infinity;
      await pause(clock, isHung ? hungMs : latencyMs, attempt);
      if (step.status !== 'ok') throw new ScriptedFailure(step);
    };
  const router = createRouter(policy, {
    providers: Object.fromEntries(policy.providers.map(({ name }) => [name, provider(name)])),
    clock,
    random: () => 0,
    deadline: deadlineMs,
    hedgeAfter: hedgeAfterMs,
    skipWaits,
    statusOf: (error) => (error instanceof ScriptedFailure ? error.step.status : undefined),
  });
  const under: Promise<Told>[] = [];
  for (let n = 0; n < options.requests; n++) {
    if (n > 0) await clock.advance(options.everyMs);
    under.push(told(n));
  }
  await clock.run();
  return { requests: await Promise.all(under), health: router.health() };

  async function told(n: number): Promise<Told> {
    const startedAtMs = clock.monotonic();
    const requestId = requestIdOf(options.context, n);
    const context = { ...options.context, request_id: requestId };
    const end = await router
      .call(undefined, context, { seed })
      .then(
        ({ provider: answered, attempts }) => ({ provider: answered, error: undefined, attempts }),
        failed,
      );
    return { requestId, startedAtMs, endedAtMs: clock.monotonic(), ...end };
  }
}

class ScriptedFailure extends Error {
  readonly step: Step;
  /** What core reads a wait from. */
  readonly retryAfterMs: number | undefined;

  constructor(step: Step) {
    super(`The story says ${step.status}.`);
    this.step = step;
    this.retryAfterMs = step.retryAfterMs;
  }
}

function failed(error: unknown) {
  if (!isRouteError(error)) throw error;
  const { code, message, attempts } = error;
  return { provider: undefined, error: { code, message }, attempts };
}

/** The first request has the id of the context, the others one of their own. */
function requestIdOf({ request_id: id }: RouteContext, n: number): string {
  const first = id == null ? 'r-1' : String(id);
  return n === 0 ? first : id == null ? `r-${n + 1}` : `${first}-${n + 1}`;
}

/** The wait ends with the attempt: a hung call does not keep the clock going. */
function pause(clock: ReturnType<typeof virtualClock>, ms: number, { signal }: RouteAttempt) {
  return new Promise<void>((resolve, reject) => {
    const abort = () => {
      clock.clearTimer(timer);
      reject(signal.reason as Error);
    };
    const timer = ms === Infinity ? undefined : clock.setTimer(resolve, ms);
    signal.addEventListener('abort', abort, { once: true });
  });
}
