/** Lines of a file or of the standard input, one at a time, however large the whole is. */
import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { CommandError, exits, type Io } from '../command.ts';

export interface Line {
  /** From 1 on. */
  number: number;
  /** Absent: it is longer than allowed. */
  text?: string;
}

type Chunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

const LINE_BREAK = 0x0a;

/** Without the blank ones. */
export async function* linesOf(
  chunks: Chunks,
  maxBytes: number,
): AsyncGenerator<Line, void, undefined> {
  let number = 1;
  let parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_BREAK); end !== -1; end = chunk.indexOf(LINE_BREAK, from)) {
      const last = chunk.subarray(from, end);
      const line = lineOf(number, [...parts, last], bytes + last.length, maxBytes);
      if (line) yield line;
      number += 1;
      from = end + 1;
      parts = [];
      bytes = 0;
    }
    const rest = chunk.subarray(from);
    bytes += rest.length;
    // What is too long already is counted, not kept.
    if (bytes <= maxBytes) parts.push(rest);
  }
  const line = lineOf(number, parts, bytes, maxBytes);
  if (line) yield line;
}

/** `-` is the standard input. */
export async function chunksOf(path: string, io: Io): Promise<Chunks> {
  return path === '-' ? [await io.input()] : fileChunks(path, io.cwd);
}

async function* fileChunks(path: string, folder: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of createReadStream(resolve(folder, path))) yield chunk as Uint8Array;
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** What a path names cannot be read. */
export function unreadable(path: string, error: unknown): CommandError {
  const { code } = error as { code?: string };
  const reason =
    code === 'ENOENT'
      ? 'there is no such file'
      : code === 'EISDIR'
        ? 'it is a folder'
        : String(code);
  return new CommandError(`${path} cannot be read: ${reason}.`, {
    exit: exits.usage,
    code: 'UNREADABLE_FILE',
    cause: error,
  });
}

function lineOf(
  number: number,
  parts: Uint8Array[],
  bytes: number,
  maxBytes: number,
): Line | undefined {
  if (bytes > maxBytes) return { number };
  // A byte order mark is how some editors begin a file.
  const text = Buffer.concat(parts)
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .trim();
  return text === '' ? undefined : { number, text };
}
