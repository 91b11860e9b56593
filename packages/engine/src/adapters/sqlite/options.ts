import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Clock, ConfigError, type Fault, type Random } from 'redrive';
import {
  checkObject,
  defaultOf,
  type Fields,
  readFields,
  reportFault,
  systemClock,
} from 'redrive/internal';
import { checkNode } from '../../node-version.ts';

export interface SqliteOptions {
  /** The store's time. Processes that share a file must share a clock: that of their machine. */
  clock?: Clock;
  /** How long a call waits while other processes hold the file (10 s). */
  busyLimitMs?: number;
  /** The file grows to this size and no further; then new work is refused with `STORE_FULL`. */
  maxFileBytes?: number;
  /** Spreads the pauses of processes that wait for each other. */
  random?: Random;
  /** Hears that the file was deleted or replaced while it was open, and where its content was copied to. */
  onFault?: (what: string, error: unknown) => void;
}

/** Where the file is: a path, or a `file:` URL with SQLite's parameters. */
export interface Place {
  path: string;
  /** What SQLite is given. */
  name: string | URL;
}

interface SqliteSettings {
  place: Place;
  clock: Clock;
  random: Random;
  busyLimitMs: number;
  maxFileBytes: number | undefined;
  onFault: (what: string, error: unknown) => void;
}

const fields = {
  busyLimitMs: { kind: 'integer', min: 0, max: 86_400_000, default: 10_000 },
  maxFileBytes: { kind: 'integer', min: 1024 * 1024, max: Number.MAX_SAFE_INTEGER },
} as const satisfies Fields;

const others = ['clock', 'random', 'onFault'];

/** Checked once, every fault at once. */
export function readOptions(file: string | URL, options: SqliteOptions): SqliteSettings {
  checkNode('The SQLite store');
  checkObject('The SQLite store', options);
  const faults: Fault[] = [];
  const { clock = systemClock, random = Math.random, onFault = reportFault, ...rest } = options;
  const values = readFields(rest, fields, [...Object.keys(fields), ...others], '', faults);
  values['busyLimitMs'] ??= defaultOf(fields.busyLimitMs);
  if (typeof onFault !== 'function') fault('onFault', 'is not a function.');
  if (typeof random !== 'function') fault('random', 'is not a function.');
  if (typeof clock?.setTimer !== 'function') fault('clock', 'is not a clock.');
  const place = placeOf(file, faults);
  if (faults.length > 0 || !place) {
    throw new ConfigError('INVALID_CONFIG', 'The SQLite store has faults:', faults);
  }
  const { busyLimitMs, maxFileBytes } = values as { busyLimitMs: number; maxFileBytes?: number };
  return { place, clock, random, busyLimitMs, maxFileBytes, onFault };

  function fault(path: string, message: string): void {
    faults.push({ path, code: 'INVALID_VALUE', message });
  }
}

function placeOf(file: unknown, faults: Fault[]): Place | undefined {
  const url = urlOf(file);
  if (url?.protocol === 'file:') return { path: fileURLToPath(url), name: url };
  if (typeof file === 'string' && !url && file !== '' && !file.startsWith(':')) {
    const path = resolve(file);
    return { path, name: path };
  }
  const message =
    "is not a path or a file: URL, such as sqlite('tasks.db'). What needs no file is a memory store: use memory().";
  faults.push({ path: 'file', code: 'INVALID_VALUE', message });
  return undefined;
}

function urlOf(file: unknown): URL | undefined {
  if (file instanceof URL) return file;
  return typeof file === 'string' && file.startsWith('file:') ? new URL(file) : undefined;
}
