/** Where what was built or downloaded is kept, so that only the first run pays. */
import { homedir } from 'node:os';
import { join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

export function cacheFolder(env: Environment, platform: NodeJS.Platform): string {
  return env['REDRIVE_SERVICES_CACHE'] || join(userCache(env, platform), 'redrive', 'services');
}

function userCache(env: Environment, platform: NodeJS.Platform): string {
  if (platform === 'darwin') return join(homedir(), 'Library', 'Caches');
  return env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
}
