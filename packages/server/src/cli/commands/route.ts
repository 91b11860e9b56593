/** `redrive route`: routing policies, checked, explained and tried out. It needs no server. */
import { basename } from 'node:path';
import { decideRoute, explainRoute, isConfigError, type RouteDecision } from 'redrive';
import { PROVIDERS_FILE } from '../../routing/policy-file.ts';
import { decisionView } from '../../routing/views.ts';
import { command, type Command, exits } from '../command.ts';
import { usageError } from '../inputs.ts';
import { type Output, outputOf, plural } from '../terminal/output.ts';
import { readContext, readPolicy, type ReadPolicy, usablePolicy } from '../route/policy-input.ts';
import { readScript, type Story, tellStory } from '../route/story.ts';
import { drawStory } from '../route/timeline.ts';
import { prettyJson, shown } from '../terminal/safe-text.ts';

const seedOption = (usual: string) =>
  ({
    kind: 'number',
    value: 'n',
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    whole: true,
    summary: `The same seed always gives the same choice and the same jitter (${usual}).`,
  }) as const;

const contextOption = {
  kind: 'text',
  value: 'file',
  summary: 'The context: a file, JSON, or - for the standard input. Empty unless given.',
} as const;

const POLICY = 'The policy is a file, JSON on the command line, or - for the standard input.';

export const commands: readonly Command[] = [
  command({
    name: 'route lint',
    summary: 'List the faults and warnings of routing policies.',
    usage: 'route lint <policy>...',
    about:
      `${POLICY} A fault makes a policy unusable. A warning is allowed and probably not meant: weights that do not sum to ` +
      '100, rules that never match, cycles. A note says what was converted from a legacy form.\n\n' +
      'Ends with 0 when no policy has a fault, and with 1 when one has; with --strict also for warnings.',
    options: { strict: { kind: 'flag', summary: 'Warnings count as faults.' } },
    examples: [
      'redrive route lint llm.json # everything that is wrong with it, each with its place',
      'redrive route lint routing/*.json --strict # in CI: no warning goes through',
      'redrive route lint llm.json --json # for programs: one object for each policy',
    ],
    async run({ positionals, options, json }, io) {
      const output = outputOf(io, json);
      let isGood = true;
      for (const source of positionals) {
        // It lies in the same folder, so `routing/*.json` has it too.
        if (basename(source) === PROVIDERS_FILE) {
          output.say(`${shown(source)}: no policy, left out. redrive doctor looks at it.`);
          continue;
        }
        const read = await readPolicy(source, io);
        const view = lintView(read);
        output.data(view);
        output.say(...lintLines(view, output));
        isGood &&= view.ok && !(options.strict && view.warnings.length > 0);
      }
      return isGood ? exits.ok : exits.failed;
    },
  }),
  command({
    name: 'route explain',
    summary: 'Decide once by a routing policy, and say why.',
    usage: 'route explain <policy>',
    about:
      `${POLICY} It shows what POST /api/v1/route/decide answers for a policy in its request.\n\n` +
      'For the next decision hand back the context that is shown, after a failure with its status: ' +
      'timeout, connection_error, rate_limit, 503, or a word of your own.',
    options: {
      context: contextOption,
      seed: seedOption('drawn unless given'),
      detail: {
        kind: 'choice',
        of: ['minimal', 'detailed', 'verbose'],
        default: 'detailed',
        summary: 'How much the explanation tells.',
      },
    },
    examples: [
      'redrive route explain llm.json # the first choice of a request',
      `redrive route explain llm.json --context '{"current_provider": "primary", "status": "timeout"}' # after a failure`,
      'redrive route explain llm.json --context ctx.json --seed 42 --detail verbose # with all providers and rules',
      'redrive route explain llm.json --context ctx.json --json # the whole answer of the API',
    ],
    async run({ positionals, options, json }, io) {
      const [source = ''] = positionals;
      if (source === '-' && options.context === '-') {
        throw usageError('The policy and --context cannot both be the standard input.');
      }
      const policy = await usablePolicy(source, io);
      const context = await readContext(options.context, io);
      const { seed, detail: detailLevel } = options;
      const decision = refusing(() => decideRoute(policy, context, { seed, detailLevel }));
      const output = outputOf(io, json);
      output.data(decisionView(decision));
      output.say(...explainLines(decision, output));
      return exits.ok;
    },
  }),
  command({
    name: 'route play',
    summary: 'Play a story of failures through a routing policy, and draw it.',
    usage: 'route play <policy>',
    about:
      `${POLICY} The router runs on a virtual clock, so that the story is told at once. Calls that --fail does not name ` +
      'work. A timeout takes the timeout_ms of the policy (5 s where it has none), any other call --latency.\n\n' +
      'Several requests show what a breaker does: --requests 8 --every 1s. ' +
      'Ends with 0 when every request was answered, and with 1 when one was not.',
    options: {
      fail: {
        kind: 'texts',
        value: 'provider:status,...',
        summary:
          'How the calls of a provider end, in order: primary:timeout,503,429@2s,ok. 429@2s asks for a pause of 2 s.',
      },
      latency: {
        kind: 'duration',
        value: 'time',
        default: 200,
        summary: 'How long a call takes.',
      },
      requests: {
        kind: 'number',
        value: 'n',
        min: 1,
        max: 100,
        whole: true,
        default: 1,
        summary: 'How many requests.',
      },
      every: {
        kind: 'duration',
        value: 'time',
        default: 1000,
        summary: 'Between the starts of two requests.',
      },
      deadline: { kind: 'duration', value: 'time', summary: 'How long a request may take in all.' },
      'hedge-after': {
        kind: 'duration',
        value: 'time',
        summary: 'Start the next provider beside one that has not answered after this.',
      },
      'skip-waits': { kind: 'flag', summary: 'Fall back at once where a retry would wait.' },
      context: contextOption,
      seed: seedOption('1'),
    },
    examples: [
      'redrive route play llm.json --fail primary:timeout,timeout # the retry, then the fallback',
      'redrive route play llm.json --fail primary:timeout,timeout --fail backup:503 # and where does it end?',
      'redrive route play llm.json --fail primary:503,503,503,503,503 --requests 8 # the breaker opens',
      'redrive route play llm.json --fail primary:429@2s --requests 4 --every 500ms # a rate limit',
      'redrive route play llm.json --fail primary:timeout --hedge-after 300ms # a second provider beside the first',
    ],
    async run({ positionals, options, json }, io) {
      const policy = await usablePolicy(positionals[0] ?? '', io);
      const script = readScript(options.fail, policy);
      const context = await readContext(options.context, io);
      const told = {
        context,
        seed: options.seed ?? 1,
        latencyMs: options.latency,
        requests: options.requests,
        everyMs: options.every,
        deadlineMs: options.deadline,
        hedgeAfterMs: options['hedge-after'],
        skipWaits: options['skip-waits'],
      };
      let story: Story;
      try {
        story = await tellStory(policy, script, told);
      } catch (error) {
        if (!isConfigError(error)) throw error;
        throw usageError(shown(error.message));
      }
      const output = outputOf(io, json);
      output.data(storyView(story, told.seed));
      output.say(...drawStory(policy, story, output));
      return story.requests.every(({ error }) => error === undefined) ? exits.ok : exits.failed;
    },
  }),
];

function lintView(read: ReadPolicy) {
  const { name } = read;
  if ('policy' in read) {
    const { id, version, fingerprint, warnings, notes } = read.policy;
    return { policy: name, id, version, fingerprint, ok: true, faults: [], warnings, notes };
  }
  const { code, message, faults } = read.fault;
  const all = faults.length > 0 ? faults : [{ path: '', code, message }];
  return { policy: name, ok: false, faults: all, warnings: [], notes: [] };
}

function lintLines(view: ReturnType<typeof lintView>, { paint }: Output): string[] {
  const { policy, ok, faults, warnings, notes } = view;
  const kinds = [
    [paint('red', 'fault'), faults],
    [paint('yellow', 'warning'), warnings],
    [paint('dim', 'note'), notes],
  ] as const;
  const lines = kinds.flatMap(([kind, list]) =>
    list.map(
      ({ path, code, message }) =>
        `  ${kind} ${paint('bold', shown(path || '(all)'))}: ${shown(message)} ${paint('dim', code)}`,
    ),
  );
  const verdict = ok
    ? paint(
        'green',
        warnings.length > 0 ? `usable, with ${plural(warnings.length, 'warning')}` : 'good',
      )
    : paint('red', plural(faults.length, 'fault'));
  return [`${shown(policy)}: ${verdict}`, ...lines];
}

function explainLines(decision: RouteDecision, { paint }: Output): string[] {
  const { explanation, warnings, context, seed } = decision;
  const { details } = explanation;
  return [
    ...explainRoute(explanation).split('\n').map(shown),
    ...(details
      ? [
          '  Providers:',
          ...details.providers.map(
            ({ provider, weight, open, exhausted }) =>
              `    ${provider}, weight ${weight}${open ? ', open' : ''}${exhausted ? ', exhausted' : ''}`,
          ),
          '  Rules:',
          ...details.rules.map(
            (rule) =>
              `    ${rule.rule_id} to ${rule.to}, ${rule.retry_attempts_used}/${rule.retry_max} retries used`,
          ),
        ]
      : []),
    whatToDo(decision),
    ...warnings.map(({ path, message }) =>
      paint('yellow', `warning ${shown(path)}: ${shown(message)}`),
    ),
    '',
    paint('dim', `Seed ${seed}. Next context:`),
    ...prettyJson(context),
  ];
}

function whatToDo(decision: RouteDecision): string {
  if (decision.result === 'error') return 'No provider is left: give up.';
  const { retryInfo, provider } = decision;
  const wait = retryInfo?.backoff_applied ? `Wait ${retryInfo.backoff_ms} ms, then call` : 'Call';
  return `${wait} ${provider}.`;
}

function storyView({ requests, health }: Story, seed: number) {
  return {
    seed,
    requests: requests.map(({ requestId, startedAtMs, endedAtMs, provider, error, attempts }) => ({
      request_id: requestId,
      started_at_ms: startedAtMs,
      ended_at_ms: endedAtMs,
      provider: provider ?? null,
      error: error ?? null,
      attempts: attempts.map((one) => ({
        provider: one.provider,
        started_at_ms: startedAtMs + one.startedAtMs,
        duration_ms: one.durationMs,
        waited_ms: one.waitedMs,
        outcome: one.outcome,
        status: one.status ?? null,
        hedge: one.hedge === true,
        explanation: one.explanation,
      })),
    })),
    providers: Object.fromEntries(
      Object.entries(health).map(([name, { state }]) => [name, { state }]),
    ),
  };
}

/** What core refuses of a context. */
function refusing<T>(decide: () => T): T {
  try {
    return decide();
  } catch (error) {
    if (!isConfigError(error)) throw error;
    throw usageError(`--context: ${shown(error.message)}`);
  }
}
