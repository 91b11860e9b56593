import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError, type Fault } from 'redrive';
import { defaultOf, type Fields, readFields } from 'redrive/internal';

export interface JsonlOptions {
  /** The file, or its `file:` URL. One process writes one file. */
  path: string | URL;
  /** A file that would grow past this is put aside first (64 MiB). */
  maxBytes?: number;
  /** How many files that were put aside are kept: `path.1` is the newest (10). */
  keep?: number;
  /** Wait for the disk after every batch, so that a power cut loses nothing that was written (false). */
  fsync?: boolean;
}

export interface JsonlSettings {
  path: string;
  maxBytes: number;
  keep: number;
  fsync: boolean;
}

const MiB = 1024 * 1024;

const fields = {
  maxBytes: { kind: 'integer', min: 1, max: Number.MAX_SAFE_INTEGER, default: 64 * MiB },
  keep: { kind: 'integer', min: 0, max: 1000, default: 10 },
  fsync: { kind: 'boolean', default: false },
} as const satisfies Fields;

/** Checked once, every fault at once. */
export function readOptions(options: JsonlOptions): JsonlSettings {
  // Nothing at all is a missing path.
  const { path, ...rest } = options ?? {};
  const faults: Fault[] = [];
  const values = readFields(rest, fields, [...Object.keys(fields), 'path'], '', faults);
  for (const [name, field] of Object.entries(fields)) values[name] ??= defaultOf(field);
  const file = pathOf(path);
  if (file === undefined) {
    const message = 'is not a path or a file: URL.';
    faults.push({ path: 'path', code: 'INVALID_VALUE', message });
  }
  if (faults.length > 0 || file === undefined) {
    throw new ConfigError('INVALID_CONFIG', 'The JSONL file has faults:', faults);
  }
  return { ...(values as unknown as Omit<JsonlSettings, 'path'>), path: file };
}

export function pathOf(path: unknown): string | undefined {
  if (path instanceof URL) return path.protocol === 'file:' ? fileURLToPath(path) : undefined;
  if (typeof path !== 'string' || path === '') return undefined;
  return path.startsWith('file:') ? fileURLToPath(path) : resolve(path);
}
