import type { AuditSink } from '../../ports/audit.ts';
import { JsonlFile } from './file.ts';
import { type JsonlOptions, readOptions } from './options.ts';

export type { JsonlOptions } from './options.ts';
export { type JsonlReading, readJsonl } from './read.ts';

/** An audit trail in a file, one JSON object a line. A path, or options. */
export function jsonlFile(options: string | URL | JsonlOptions): AuditSink {
  const isPath = typeof options === 'string' || options instanceof URL;
  return new JsonlFile(readOptions(isPath ? { path: options } : options));
}
