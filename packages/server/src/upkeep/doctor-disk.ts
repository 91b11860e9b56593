import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { diskRoom } from './doctor-host.ts';
import type { Finding } from './finding.ts';

/** Of the disk that the folder is on, or will be. */
export async function examineDisk(folder: string): Promise<Finding> {
  for (let path = resolve(folder); ; path = dirname(path)) {
    try {
      const { bavail, bsize, blocks } = await statfs(path);
      return diskRoom(folder, bavail * bsize, blocks * bsize);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' && dirname(path) !== path) continue;
      return {
        about: 'disk',
        level: 'warning',
        what: `${folder} cannot be looked at (${code ?? 'unknown error'}).`,
        advice:
          'Check that its owner is the user that runs Redrive, or name another folder with REDRIVE_DATA_DIR.',
      };
    }
  }
}
