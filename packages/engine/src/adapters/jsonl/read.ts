import { type FileHandle, open, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { ConfigError } from 'redrive';
import type { AuditEvent } from '../../ports/audit.ts';
import { pathOf } from './options.ts';

/** The events of a file and of those that were put aside, oldest first. */
export interface JsonlReading extends AsyncIterable<AuditEvent> {
  /** Lines that are no event, so far: torn by a crash, or longer than any event is. They are skipped. */
  readonly torn: number;
}

/** Reads what `jsonlFile` wrote. A file that is missing is empty. */
export function readJsonl(path: string | URL): JsonlReading {
  const file = pathOf(path);
  if (file === undefined) {
    const message = 'is not a path or a file: URL.';
    const fault = { path: 'path', code: 'INVALID_VALUE', message } as const;
    throw new ConfigError('INVALID_CONFIG', 'The JSONL file has faults:', [fault]);
  }
  return new Reading(file);
}

const MAX_LINE = 16 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;

class Reading implements JsonlReading {
  readonly #path: string;
  torn = 0;

  constructor(path: string) {
    this.#path = path;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<AuditEvent> {
    this.torn = 0;
    const handles = await opened(this.#path);
    try {
      for (const handle of handles) {
        for await (const line of linesOf(handle)) {
          const event = eventOf(line);
          if (event) yield event;
          else this.torn += 1;
        }
      }
    } finally {
      for (const handle of handles) await handle.close();
    }
  }
}

/** All of them before the first is read: what is put aside meanwhile is neither missed nor read twice. */
async function opened(path: string): Promise<FileHandle[]> {
  const handles: FileHandle[] = [];
  try {
    for (const one of [...(await putAside(path)), path]) {
      const handle = await open(one, 'r').catch(unlessMissing);
      if (handle) handles.push(handle);
    }
    return handles;
  } catch (error) {
    for (const handle of handles) await handle.close();
    throw error;
  }
}

/** `path.3`, `path.2`, `path.1`: oldest first. */
async function putAside(path: string): Promise<string[]> {
  const start = `${basename(path)}.`;
  const names = (await readdir(dirname(path)).catch(unlessMissing)) ?? [];
  return names
    .filter((name) => name.startsWith(start) && /^[1-9]\d*$/.test(name.slice(start.length)))
    .map((name) => Number(name.slice(start.length)))
    .sort((a, b) => b - a)
    .map((n) => join(dirname(path), start + n));
}

function unlessMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}

/** Split at line feeds alone: `node:readline` also splits at U+2028, which JSON may hold. Undefined: a line too long. */
async function* linesOf(handle: FileHandle): AsyncGenerator<string | undefined> {
  const decoder = new StringDecoder('utf8');
  const buffer = Buffer.alloc(CHUNK_BYTES);
  const line = new Line();
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES);
    const text = bytesRead === 0 ? decoder.end() : decoder.write(buffer.subarray(0, bytesRead));
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      line.add(text.slice(start, end));
      yield line.take();
      start = end + 1;
    }
    line.add(text.slice(start));
    if (bytesRead === 0) break;
  }
  if (line.length > 0) yield line.take();
}

/** A line that comes in pieces. Of one that is too long nothing is kept. */
class Line {
  #pieces: string[] = [];
  length = 0;

  add(piece: string): void {
    this.length += piece.length;
    if (this.length > MAX_LINE) this.#pieces = [];
    else this.#pieces.push(piece);
  }

  take(): string | undefined {
    const text = this.length > MAX_LINE ? undefined : this.#pieces.join('');
    this.#pieces = [];
    this.length = 0;
    return text;
  }
}

function eventOf(line: string | undefined): AuditEvent | undefined {
  try {
    const event: unknown = line === undefined ? undefined : JSON.parse(line);
    return typeof event === 'object' && event !== null && 'event_type' in event
      ? (event as AuditEvent)
      : undefined;
  } catch {
    // Not JSON: torn, which the caller counts.
    return undefined;
  }
}
