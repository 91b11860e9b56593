/** Which store a command is about, where that is said on the command line: for all that look after one. */
import type { SettingsInput } from '../settings/read.ts';
import type { OptionTable } from './command.ts';

export const storeOptions = {
  'data-dir': { kind: 'text', value: 'folder', summary: 'Instead of REDRIVE_DATA_DIR.' },
  config: { kind: 'text', value: 'file', summary: 'Instead of REDRIVE_CONFIG.' },
} as const satisfies OptionTable;

/** What was said of them, for whoever reads the settings. */
export function storeInput(options: {
  readonly 'data-dir': string | undefined;
  readonly config: string | undefined;
}): Pick<SettingsInput, 'flags' | 'config'> {
  const { 'data-dir': dataDir, config } = options;
  return {
    flags: dataDir === undefined ? {} : { dataDir },
    ...(config === undefined ? {} : { config }),
  };
}
