/** `parameters` of a request: the configured context as a plain text, or options as a JSON object. Pure but for a small cache. */
import type { CriterionSettings } from 'redrive';
import { settingsFaults } from '../criteria/settings.ts';
import { isObject, objectOf } from './events.ts';

interface Parameters {
  /** Chooses a named set of settings. */
  readonly context?: string;
  readonly settings?: CriterionSettings;
  readonly warnings: readonly string[];
}

const none: Parameters = Object.freeze({ warnings: [] });
const MAX_LENGTH = 16 * 1024;
const MAX_KEPT = 200;
const MAX_FAULTS = 5;

/** A workflow sends the same text with every request. */
const known = new Map<string, Parameters>();

/** Options with faults are left out as a whole, with a warning: to refuse the request would fail the customer's write. */
export function readParameters(parameters: unknown): Parameters {
  if (parameters === undefined || parameters === null || parameters === '') return none;
  if (typeof parameters !== 'string') {
    return isObject(parameters)
      ? optionsOf(parameters)
      : ignored('They are neither a text nor an object.');
  }
  if (parameters.length > MAX_LENGTH)
    return ignored(`They have more than ${MAX_LENGTH} characters.`);
  let read = known.get(parameters);
  if (read === undefined) {
    const options = parameters.trimStart().startsWith('{') ? objectOf(parameters) : undefined;
    read = options ? optionsOf(options) : { context: parameters, warnings: [] };
    if (known.size >= MAX_KEPT) known.clear();
    known.set(parameters, read);
  }
  return read;
}

function optionsOf(options: Record<string, unknown>): Parameters {
  const faults = settingsFaults(options);
  if (faults.length > 0) {
    const shown = faults.slice(0, MAX_FAULTS).map(({ path, message }) => `${path}: ${message}`);
    return ignored(shown.join(' '));
  }
  const settings = options as CriterionSettings;
  const { context } = settings;
  return { ...(context === undefined ? {} : { context }), settings, warnings: [] };
}

function ignored(why: string): Parameters {
  return { warnings: [`PARAMETERS_IGNORED: The parameters are not used. ${why}`] };
}
