import { join } from 'node:path';
import type { Settings } from './settings.ts';

/** The file of the store that needs no server. */
export function databaseFile({ dataDir }: Pick<Settings, 'dataDir'>): string {
  return join(dataDir, 'redrive.db');
}
