import { statfsSync } from 'node:fs';
import { EngineError } from '../../errors.ts';

/** Linux's numbers of file systems that other machines share: neither their locks nor their shared memory can be trusted. */
const networkFileSystems = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB2'],
  [0xff534d42, 'CIFS'],
  [0x564c, 'NCP'],
  [0x5346414f, 'AFS'],
  [0x6b414653, 'AFS'],
  [0x73757245, 'Coda'],
  [0x01021997, '9P'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
  [0x01161970, 'GFS2'],
  [0x7461636f, 'OCFS2'],
  [0x19830326, 'BeeGFS'],
]);

/** What a folder that is known to be on another machine is on. Only Linux says so. */
export function networkFileSystemOf(
  folder: string,
  typeOf: (folder: string) => number | undefined = fileSystemType,
): string | undefined {
  const type = typeOf(folder);
  // Where a long has 32 bits the larger numbers come out negative.
  return type === undefined ? undefined : networkFileSystems.get(type >>> 0);
}

/** Throws where the folder is known to be on another machine. */
export function assertLocal(
  folder: string,
  typeOf: (folder: string) => number | undefined = fileSystemType,
): void {
  const name = networkFileSystemOf(folder, typeOf);
  if (name === undefined) return;
  throw new EngineError(
    'STORE_NOT_LOCAL',
    `The folder ${folder} is on a network file system (${name}), where a SQLite file can be damaged. Name a file on a local disk, or use PostgreSQL.`,
  );
}

function fileSystemType(folder: string): number | undefined {
  return process.platform === 'linux' ? statfsSync(folder).type : undefined;
}
