/** `redrive criteria`: what a workflow engine would be answered. It needs no server. */
import {
  type CriterionName,
  criterionNames,
  type CriterionOptions,
  type CriterionResult,
  type CriterionSettings,
  evaluateCriterion,
  isCriterionName,
} from 'redrive';
import { explainAnswer } from '../../criteria/explain.ts';
import { unknownCriterion } from '../../criteria/names.ts';
import { SettingsInForce, settingsFaults, settingsView } from '../../criteria/settings.ts';
import { wireAnswer } from '../../criteria/wire.ts';
import { command, type Command, exits, type Io } from '../command.ts';
import { entitiesOf, type Read } from '../entities.ts';
import { readTime, usageError } from '../inputs.ts';
import { facts, type Output, outputOf } from '../terminal/output.ts';
import { shown } from '../terminal/safe-text.ts';

const summaries: Readonly<Record<CriterionName, string>> = {
  isRetryDelayElapsed: 'Whether the delay since the last attempt is over.',
  isMaxRetriesExceeded: 'Whether the attempts have reached the limit, with what raises it.',
  hasRetriesAvailable: 'Whether the attempts are below maxRetries.',
};

const configOption = {
  config: { kind: 'text', value: 'file', summary: 'Instead of REDRIVE_CONFIG.' },
} as const;

export const commands: readonly Command[] = [
  command({
    name: 'criteria evaluate',
    summary: 'Answer a criterion for an entity, without a server.',
    usage: 'criteria evaluate <criterion> <file>',
    about:
      'The file holds one entity as JSON, or one per line; - is the standard input. The settings are those that are ' +
      'configured: redrive criteria list shows them.\n\n' +
      'Ends with 0 when every entity has an answer, yes or no, and with 1 when one of them could not be read or evaluated.',
    options: {
      at: {
        kind: 'text',
        value: 'time',
        summary:
          "The current time of the evaluation: 2030-01-31T12:00:00Z. It goes before the entity's currentTime.",
      },
      'entity-id': {
        kind: 'text',
        value: 'id',
        summary: "The key of the jitter. It goes before the entity's own id.",
      },
      context: {
        kind: 'text',
        value: 'name',
        summary: 'The named set of settings, where the operationType of the entity names none.',
      },
      set: {
        kind: 'texts',
        value: 'name=value',
        summary: 'A setting for this evaluation: enableJitter=false. As often as needed.',
      },
      seed: {
        kind: 'number',
        value: 'n',
        min: 0,
        max: Number.MAX_SAFE_INTEGER,
        whole: true,
        default: 0,
        summary: 'The seed of the jitter that the deployment has.',
      },
      ...configOption,
    },
    examples: [
      'redrive criteria evaluate isRetryDelayElapsed entity.json # is it due?',
      'redrive criteria evaluate isRetryDelayElapsed entity.json --at 2030-01-31T12:00:00Z # will it be then?',
      `echo '{"attemptCount": 2}' | redrive criteria evaluate hasRetriesAvailable - # from the standard input`,
      'redrive criteria evaluate isRetryDelayElapsed entities.jsonl --json # one answer per line',
      'redrive criteria evaluate isRetryDelayElapsed entity.json --set enableJitter=false # with another setting',
    ],
    async run({ positionals, options, json }, io) {
      const [name = '', file = ''] = positionals;
      if (!isCriterionName(name)) throw usageError(shown(unknownCriterion(name)));
      const at = readTime('--at', options.at);
      const settings = new SettingsInForce(await configured(io, options.config)).of(
        readSet(options.set),
      );
      const evaluation: CriterionOptions = {
        key: options['entity-id'],
        context: options.context,
        seed: options.seed,
      };
      const output = outputOf(io, json);
      let failed = false;
      for await (const { read, isOnly } of withOnly(entitiesOf(file, io))) {
        const line = isOnly ? undefined : read.line;
        if ('fault' in read) {
          failed = true;
          output.data({ line: read.line, error: read.fault });
          output.say(...faultLines(read.fault, line));
          continue;
        }
        const result = evaluateCriterion(name, atTime(read.entity, at), settings, evaluation);
        failed ||= result.errors.length > 0;
        output.data(wireAnswer(result));
        output.say(...answerLines(result, line, output));
      }
      return failed ? exits.failed : exits.ok;
    },
  }),
  command({
    name: 'criteria list',
    summary: 'List the criteria and the settings in force.',
    usage: 'criteria list',
    about:
      'Settings come from the environment (CRITERION_DEFAULT_RETRY_DELAY_SECONDS and so on) and from criteria in ' +
      'redrive.config.ts. redrive config check shows where each comes from.',
    options: configOption,
    examples: [
      'redrive criteria list # names and settings',
      'CRITERION_PROFILE=development redrive criteria list # with the shorter delays',
    ],
    async run({ options, json }, io) {
      const output = outputOf(io, json);
      const settings = await configured(io, options.config);
      const view = settingsView(settings);
      output.data({ items: criterionNames.map((name) => ({ name })), ...view });
      output.say(
        ...facts(
          criterionNames.map((name) => [name, summaries[name]]),
          output,
        ),
        '',
        output.paint('bold', `Settings, profile ${view.profile}`),
        ...settingLines(view.settings, output),
      );
      for (const [set, own] of Object.entries(settings.sets ?? {})) {
        output.say('', output.paint('bold', `Set ${shown(set)}`), ...settingLines(own, output));
      }
      return exits.ok;
    },
  }),
];

/** The configured settings of the criteria. Settings are loaded here only: help must not wait for them. */
async function configured(io: Io, config: string | undefined): Promise<CriterionSettings> {
  const { settingsOf } = await import('../settings.ts');
  return (await settingsOf(io, config === undefined ? {} : { config })).criteria;
}

/** `name=value` as settings, checked as those of a file are. A value is JSON, or else a text. */
function readSet(pairs: readonly string[]): CriterionSettings | undefined {
  if (pairs.length === 0) return undefined;
  const entries = pairs.map((pair) => {
    const at = pair.indexOf('=');
    if (at < 1) {
      throw usageError(`--set: '${shown(pair)}' is not name=value, such as enableJitter=false.`);
    }
    return [pair.slice(0, at).trim(), valueOf(pair.slice(at + 1).trim())] as const;
  });
  const settings = Object.fromEntries(entries);
  const faults = settingsFaults(settings);
  if (faults.length === 0) return settings;
  const lines = faults.map(({ path, message }) => `--set ${shown(path)}: ${shown(message)}`);
  throw usageError(lines.join('\n'));
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // A text needs no quotes on a command line.
    return text;
  }
}

function atTime(entity: unknown, at: string | undefined): unknown {
  const isObject = typeof entity === 'object' && entity !== null && !Array.isArray(entity);
  return isObject && at !== undefined ? { ...entity, currentTime: at } : entity;
}

/** Each with whether there is no other: the number of a line means something where there are many. */
async function* withOnly(
  reads: AsyncIterable<Read>,
): AsyncGenerator<{ read: Read; isOnly: boolean }> {
  let held: Read | undefined;
  let many = false;
  for await (const read of reads) {
    if (held) {
      many = true;
      yield { read: held, isOnly: false };
    }
    held = read;
  }
  if (held) yield { read: held, isOnly: !many };
}

function answerLines(
  result: CriterionResult,
  line: number | undefined,
  { paint }: Output,
): string[] {
  const { matches, reason, warnings } = result;
  const answer = matches ? paint('green', 'yes') : paint('yellow', 'no');
  const notes = warnings
    .filter(({ code }) => code !== 'CLOCK_SKEW')
    .map(({ code, message }) => `  ${paint('dim', `${code}: ${shown(message)}.`)}`);
  return [
    `${prefix(line)}matches: ${answer}. ${shown(explainAnswer(result))} (${reason})`,
    ...notes,
  ];
}

function faultLines({ code, message }: { code: string; message: string }, line?: number) {
  return [`${prefix(line)}${code}: ${shown(message)}`];
}

function prefix(line: number | undefined): string {
  return line === undefined ? '' : `line ${line}: `;
}

function settingLines(settings: object, output: Output): string[] {
  const pairs = Object.entries(settings).map(
    ([name, value]) => [name, shown(String(value))] as const,
  );
  return facts(pairs, output).map((line) => `  ${line}`);
}
