/** The settings of the criteria: the file's, overlaid by what the environment says. */
import { criterionConfig, type CriterionSettings, type Fault, isConfigError } from 'redrive';
import { joinPath } from 'redrive/internal';
import type { Values } from './settings.ts';

const MAX_SETS = 1000;
const MAX_SET_NAME = 256;

/** Core checks the file's part: its names and its sets. A variable outranks the file's field, not its sets. */
export function readCriteria(
  data: unknown,
  values: Values,
  faults: Fault[],
): Readonly<CriterionSettings> {
  const file = fileCriteria(data, faults);
  const written = Object.entries(values).flatMap(([name, value]) =>
    name.startsWith(PREFIX) && value !== undefined ? [[name.slice(PREFIX.length), value]] : [],
  );
  return Object.freeze({ ...file, ...(Object.fromEntries(written) as CriterionSettings) });
}

const PREFIX = 'criteria.';

function fileCriteria(data: unknown, faults: Fault[]): CriterionSettings {
  if (data === undefined) return {};
  try {
    criterionConfig(data as CriterionSettings);
  } catch (error) {
    if (!isConfigError(error)) throw error;
    for (const { path, code, message } of error.faults) {
      const place = path === '' ? 'criteria' : `criteria.${path}`;
      faults.push({ path: place, code, message });
    }
    return {};
  }
  const { sets = {} } = data as CriterionSettings;
  const names = Object.keys(sets);
  if (names.length > MAX_SETS) {
    const message = `has ${names.length} sets; ${MAX_SETS} are allowed. Leave out those that are not used.`;
    faults.push({ path: 'criteria.sets', code: 'INVALID_VALUE', message });
  }
  for (const name of names.filter((one) => one === '' || one.length > MAX_SET_NAME)) {
    const message = `the name of a set has 1 to ${MAX_SET_NAME} characters, as an operation type has.`;
    const path = joinPath('criteria.sets', name.slice(0, 40));
    faults.push({ path, code: 'INVALID_VALUE', message });
  }
  return data as CriterionSettings;
}
