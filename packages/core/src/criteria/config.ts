import { ConfigError } from '../errors.ts';
import type { Fault } from '../errors.ts';
import { didYouMean, nearest, show } from '../options/faults.ts';

/** What a criterion is configured by; the names are those that workflows use. */
export interface CriterionConfig {
  /** The delay of an entity that has none, in whole seconds. */
  defaultRetryDelaySeconds: number;
  defaultBackoffMultiplier: number;
  /** The cap of an entity that has none, in whole seconds. It belongs to exponential backoff. */
  defaultMaxDelaySeconds: number;
  enableExponentialBackoff: boolean;
  enableJitter: boolean;
  /** The largest jitter as a share of the delay: 0.1 adds up to a tenth. */
  jitterPercentage: number;
  /** An evaluation that took longer answers false. */
  responseTimeoutMs: number;
  calculationNodesTags: string;
  context: string;
  attachEntity: boolean;
}

export type CriterionProfile = 'development' | 'production';

/** A configuration as it is written: what differs from the profile, and named sets of what differs from that. */
export interface CriterionSettings extends Partial<CriterionConfig> {
  profile?: CriterionProfile;
  /** By name, which is an operation type or a request's context. */
  sets?: Readonly<Record<string, Partial<CriterionConfig>>>;
}

/** What chooses among the named sets, and the profile where the settings are not to decide it. */
export interface CriterionChoice {
  /** From the entity, so it may be anything; one that names no set chooses none. */
  operationType?: unknown;
  /** From the request; it counts where the operation type names no set. */
  context?: unknown;
  profile?: CriterionProfile;
}

export const criterionDefaults: Readonly<CriterionConfig> = Object.freeze({
  defaultRetryDelaySeconds: 60,
  defaultBackoffMultiplier: 2,
  defaultMaxDelaySeconds: 3600,
  enableExponentialBackoff: true,
  enableJitter: true,
  jitterPercentage: 0.1,
  responseTimeoutMs: 2000,
  calculationNodesTags: 'retry-timing',
  context: 'retry-delay-check',
  attachEntity: true,
});

/** Production is the defaults; development waits a twelfth of the delay, and a minute at most. */
const criterionProfiles: Readonly<Record<CriterionProfile, Partial<CriterionConfig>>> =
  Object.freeze({
    development: { defaultRetryDelaySeconds: 5, defaultMaxDelaySeconds: 60 },
    production: {},
  });

interface Rule {
  accepts: (value: unknown) => boolean;
  /** What it must be, for a person. */
  expected: string;
}

export const positiveRule: Rule = { accepts: isPositive, expected: 'a positive number' };
const booleanRule: Rule = { accepts: isBoolean, expected: 'true or false' };
const textRule: Rule = { accepts: isText, expected: 'a text of 1 or more characters' };

/** What each field must be. */
export const criterionRules: { readonly [Name in keyof CriterionConfig]: Rule } = {
  defaultRetryDelaySeconds: {
    accepts: (value) => Number.isInteger(value) && (value as number) >= 0,
    expected: 'a whole number, 0 or more',
  },
  defaultBackoffMultiplier: positiveRule,
  defaultMaxDelaySeconds: {
    accepts: (value) => Number.isInteger(value) && (value as number) >= 1,
    expected: 'a whole number, 1 or more',
  },
  enableExponentialBackoff: booleanRule,
  enableJitter: booleanRule,
  jitterPercentage: {
    accepts: (value) => isFiniteNumber(value) && value >= 0 && value <= 1,
    expected: 'a share from 0 to 1',
  },
  responseTimeoutMs: positiveRule,
  calculationNodesTags: textRule,
  context: textRule,
  attachEntity: booleanRule,
};

/**
 * The configuration for one kind of evaluation: the defaults, overlaid by the profile, then by the settings'
 * own fields, then by the named set that the choice points at. Checked at the edge, once: settings with
 * faults throw one `ConfigError` that lists them all.
 */
export function criterionConfig(
  settings: CriterionSettings = {},
  choice: CriterionChoice = {},
): Readonly<CriterionConfig> {
  const faults = isRecord(settings)
    ? settingsFaults(settings)
    : [invalid('', settings, 'an object')];
  if (choice.profile !== undefined) checkProfile('choice.profile', choice.profile, faults);
  if (faults.length > 0) {
    throw new ConfigError('INVALID_CONFIG', 'The criterion has faults in its settings:', faults);
  }
  return prepare(settings, choice);
}

function prepare(settings: CriterionSettings, choice: CriterionChoice): Readonly<CriterionConfig> {
  const config = Object.freeze(layerConfig(settings, choice));
  prepared.set(config, { config, sets: noSets });
  return config;
}

/**
 * Checks settings once, named sets included, for many evaluations. An evaluation with what this returns only
 * looks up its set. Settings with faults throw one `ConfigError` that lists them all.
 */
export function criterionSettings(settings: CriterionSettings = {}): Readonly<CriterionSettings> {
  const config = criterionConfig(settings);
  const sets = new Map<unknown, Readonly<CriterionConfig>>();
  for (const name of Object.keys(settings.sets ?? {})) {
    // Checked above: to check all sets again for each of them would take minutes for some thousand sets.
    sets.set(name, prepare(settings, { operationType: name }));
  }
  const copy: Readonly<CriterionSettings> = Object.freeze({
    ...config,
    sets: frozenSets(settings),
  });
  prepared.set(copy, { config, sets });
  return copy;
}

function frozenSets({ sets = {} }: CriterionSettings): NonNullable<CriterionSettings['sets']> {
  // From entries, since an assignment to `__proto__` would get lost.
  const copies = Object.entries(sets).map(([name, set]) => [name, Object.freeze({ ...set })]);
  return Object.freeze(Object.fromEntries(copies) as Record<string, Partial<CriterionConfig>>);
}

interface Prepared {
  readonly config: Readonly<CriterionConfig>;
  readonly sets: ReadonlyMap<unknown, Readonly<CriterionConfig>>;
}

const noSets: Prepared['sets'] = new Map();

/** What `criterionConfig` and `criterionSettings` gave out is complete: evaluations need not lay it out again. */
const prepared = new WeakMap<object, Prepared>([
  [criterionDefaults, { config: criterionDefaults, sets: noSets }],
]);

/** The layers of `criterionConfig` without its checks: total, for evaluations that were handed settings as they are. */
export function layerConfig(
  settings: CriterionSettings,
  choice: CriterionChoice,
): Readonly<CriterionConfig> {
  const known = prepared.get(settings);
  if (known) {
    const { config, sets } = known;
    if (sets.size === 0) return config;
    return sets.get(choice.operationType) ?? sets.get(choice.context) ?? config;
  }
  const config: CriterionConfig = { ...criterionDefaults };
  const { sets } = settings;
  overlay(config, named(criterionProfiles, choice.profile ?? settings.profile));
  overlay(config, settings);
  overlay(config, named(sets, choice.operationType) ?? named(sets, choice.context));
  return config;
}

function overlay(config: CriterionConfig, layer: unknown): void {
  if (!isRecord(layer)) return;
  const values = config as object as Record<string, unknown>;
  for (const name of fieldNames) {
    if (layer[name] !== undefined) values[name] = layer[name];
  }
}

/** Own names only: an operation type of `constructor` must not reach a prototype. */
function named(sets: unknown, name: unknown): unknown {
  return isRecord(sets) && typeof name === 'string' && Object.hasOwn(sets, name)
    ? sets[name]
    : undefined;
}

const fieldNames = Object.keys(criterionDefaults) as (keyof CriterionConfig)[];
const settingsNames: readonly string[] = [...fieldNames, 'profile', 'sets'];

/** Whoever made more mistakes than that mends these first. Looking for what each name may mean costs time. */
const MAX_FAULTS = 100;

function settingsFaults(settings: Record<string, unknown>): Fault[] {
  const { profile, sets, ...fields } = settings;
  const faults: Fault[] = [];
  checkFields('', fields, settingsNames, faults);
  if (profile !== undefined) checkProfile('profile', profile, faults);
  if (sets === undefined) return faults;
  if (!isRecord(sets)) {
    faults.push(invalid('sets', sets, 'an object'));
    return faults;
  }
  for (const [name, set] of Object.entries(sets)) {
    if (faults.length >= MAX_FAULTS) break;
    if (isRecord(set)) checkFields(`sets.${name}.`, set, fieldNames, faults);
    else faults.push(invalid(`sets.${name}`, set, 'an object'));
  }
  return faults;
}

function checkFields(
  prefix: string,
  fields: Record<string, unknown>,
  known: readonly string[],
  faults: Fault[],
): void {
  for (const [name, value] of Object.entries(fields)) {
    if (faults.length >= MAX_FAULTS) return;
    const path = prefix + name;
    if (!Object.hasOwn(criterionRules, name)) {
      const message = `there is no such setting.${didYouMean(nearest(name, known))}`;
      faults.push({ path, code: 'UNKNOWN_FIELD', message });
      continue;
    }
    const { accepts, expected } = criterionRules[name as keyof CriterionConfig];
    if (value !== undefined && !accepts(value)) faults.push(invalid(path, value, expected));
  }
}

function checkProfile(path: string, profile: unknown, faults: Fault[]): void {
  if (named(criterionProfiles, profile) !== undefined) return;
  const known = Object.keys(criterionProfiles);
  const hint = didYouMean(nearest(profile, known));
  faults.push(invalid(path, profile, known.join(' or '), hint));
}

function invalid(path: string, value: unknown, expected: string, hint = ''): Fault {
  return { path, code: 'INVALID_VALUE', message: `${show(value)} is not ${expected}.${hint}` };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isFiniteNumber(value: unknown): value is number {
  return Number.isFinite(value);
}

function isPositive(value: unknown): boolean {
  return isFiniteNumber(value) && value > 0;
}

function isBoolean(value: unknown): boolean {
  return typeof value === 'boolean';
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}
