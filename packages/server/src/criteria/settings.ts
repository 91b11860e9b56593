/** Which settings an evaluation has: the configured ones, overlaid by those of the request. */
import {
  criterionConfig,
  criterionSettings,
  type CriterionSettings,
  type Fault,
  isConfigError,
} from 'redrive';

const MAX_KEPT = 100;
const MAX_KEPT_TEXT = 4096;
/** Each is laid out for the evaluation, before anybody else gets a turn. */
const MAX_SETS = 1000;

export class SettingsInForce {
  readonly configured: CriterionSettings;
  /** What evaluations without settings of their own use. */
  readonly usual: Readonly<CriterionSettings>;
  /** Callers send the same few settings again and again: checking and layering them costs more than an evaluation. */
  readonly #byText = new Map<string, Readonly<CriterionSettings>>();
  readonly #byObject = new WeakMap<CriterionSettings, Readonly<CriterionSettings>>();

  constructor(configured: CriterionSettings) {
    this.configured = configured;
    this.usual = criterionSettings(configured);
  }

  /** Total: settings that have faults count as none, since whoever took them in has checked them. */
  of(given: CriterionSettings | undefined): Readonly<CriterionSettings> {
    if (given === undefined) return this.usual;
    let known = this.#byObject.get(given);
    if (known) return known;
    known = this.#find(given);
    this.#byObject.set(given, known);
    return known;
  }

  #find(given: CriterionSettings): Readonly<CriterionSettings> {
    try {
      const text = JSON.stringify(given);
      const known = this.#byText.get(text);
      if (known) return known;
      const joined = criterionSettings(overlaid(this.configured, given));
      if (text.length <= MAX_KEPT_TEXT) this.#keep(text, joined);
      return joined;
    } catch {
      return this.usual;
    }
  }

  #keep(text: string, settings: Readonly<CriterionSettings>): void {
    const [oldest] = this.#byText.keys();
    if (this.#byText.size >= MAX_KEPT && oldest !== undefined) this.#byText.delete(oldest);
    this.#byText.set(text, settings);
  }
}

/** The settings in force, as the API and the command line show them: those of each set are complete. */
export function settingsView(configured: CriterionSettings) {
  const sets = Object.keys(configured.sets ?? {}).map(
    (name) => [name, criterionConfig(configured, { operationType: name })] as const,
  );
  return {
    profile: configured.profile ?? 'production',
    settings: criterionConfig(configured),
    sets: Object.fromEntries(sets),
  };
}

/** The faults of a request's settings; none: they can be used. */
export function settingsFaults(given: unknown): readonly Fault[] {
  const { sets } = Object(given) as CriterionSettings;
  const count = Object.keys(Object(sets) as object).length;
  if (count > MAX_SETS) {
    const message = `has ${count} sets; ${MAX_SETS} are allowed. Send those that the entities need.`;
    return [{ path: 'sets', code: 'INVALID_VALUE', message }];
  }
  try {
    criterionConfig(given as CriterionSettings);
    return [];
  } catch (error) {
    if (isConfigError(error)) return error.faults;
    throw error;
  }
}

/** A field of the request outranks the configured field, in every configured set too; a field of its set outranks both. */
function overlaid(configured: CriterionSettings, given: CriterionSettings): CriterionSettings {
  const { sets: givenSets = {}, profile, ...fields } = given;
  // From entries, since an assignment to `__proto__` would get lost.
  const configuredSets = Object.entries(configured.sets ?? {}).map(
    ([name, set]) => [name, { ...set, ...fields, ...ownSet(givenSets, name) }] as const,
  );
  return {
    ...configured,
    ...fields,
    ...(profile === undefined ? {} : { profile }),
    sets: { ...givenSets, ...Object.fromEntries(configuredSets) },
  };
}

/** A set may be called `constructor`. */
function ownSet(sets: NonNullable<CriterionSettings['sets']>, name: string) {
  return Object.hasOwn(sets, name) ? sets[name] : undefined;
}
