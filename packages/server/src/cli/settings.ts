/** Settings for commands: read, warned about, and with every fault at once where there are any. */
import { hiddenUrl } from '../settings/hide.ts';
import {
  readSettings,
  type SettingFault,
  type SettingsInput,
  type SettingsReading,
} from '../settings/read.ts';
import type { Settings } from '../settings/settings.ts';
import { CommandError, exits, type Io } from './command.ts';

/** For commands that need them to work. Warnings go to `err`. */
export async function settingsOf(
  io: Io,
  more: Omit<SettingsInput, 'env' | 'cwd'> = {},
): Promise<Settings> {
  const reading = await readAll(io, more);
  // Also beside faults: the cause of one may be a setting of a misspelt name.
  for (const warning of reading.warnings) io.err(`warning: ${warning}\n`);
  if (!reading.ok) {
    throw new CommandError(faultText(reading.faults), {
      exit: exits.configuration,
      code: 'INVALID_CONFIG',
    });
  }
  return reading.settings;
}

export function readAll(
  { env, cwd, isTty }: Io,
  more: Omit<SettingsInput, 'env' | 'cwd'> = {},
): Promise<SettingsReading> {
  return readSettings({ env, cwd, isTty, ...more });
}

export function faultText(faults: readonly SettingFault[]): string {
  const count = faults.length === 1 ? 'one fault' : `${faults.length} faults`;
  const lines = faults.map(
    ({ name, from, message }) => `  ${name}: ${message}${from === name ? '' : ` (from ${from})`}`,
  );
  return `The configuration has ${count}:\n${lines.join('\n')}`;
}

/** Where everything is kept, in words. */
export function storeText({ databaseUrl }: Settings, file: string): string {
  return databaseUrl === undefined ? `SQLite, ${file}` : `PostgreSQL, ${hiddenUrl(databaseUrl)}`;
}
