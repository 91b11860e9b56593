/** What people write on a command line, read: payloads, headers, times. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseExactly, readPayload } from '../http/reading/exact-json.ts';
import { CommandError, exits, type Io } from './command.ts';
import { unreadable } from './terminal/lines.ts';
import { shown } from './terminal/safe-text.ts';

/** The command was called in a way that makes no sense. */
export function usageError(message: string): CommandError {
  return new CommandError(message, { exit: exits.usage, code: 'USAGE' });
}

/** The fields of a request that hold a payload: JSON where it is JSON, to the last digit, else its bytes. */
type Message = { payload: unknown } | { payload_base64: string };

/** `text` is the payload itself, `@file`, or `-` for the standard input, as where there is none. */
export async function messageOf(text: string | undefined, raw: boolean, io: Io): Promise<Message> {
  if (text === undefined && io.isTty) {
    io.err('The payload is read from the standard input. Ctrl-D ends it.\n');
  }
  if (text === undefined || text === '-') return messageOfBytes(await io.input(), raw);
  if (text.startsWith('@')) return messageOfBytes(readBytes(text.slice(1), io), raw);
  return messageOfBytes(Buffer.from(text), raw);
}

export function messageOfBytes(bytes: Uint8Array, raw = false): Message {
  const json = raw ? undefined : readPayload(bytes);
  return json ? { payload: json.value } : { payload_base64: Buffer.from(bytes).toString('base64') };
}

/** `name: value`, any number of them; undefined for none. */
export function readHeaders(texts: readonly string[]): Record<string, string> | undefined {
  if (texts.length === 0) return undefined;
  const pairs = texts.map((text) => {
    const at = text.indexOf(':');
    if (at < 1) throw usageError(`--header: '${shown(text)}' has no name. Write 'name: value'.`);
    return [text.slice(0, at).trim(), text.slice(at + 1).trim()] as const;
  });
  return Object.fromEntries(pairs);
}

export function readJson(option: string, text: string): unknown {
  try {
    return parseExactly(text);
  } catch (error) {
    throw usageError(
      `${option}: it begins as JSON, but is none: ${shown((error as Error).message)}`,
    );
  }
}

/** As the API has times; undefined stays undefined. */
export function readTime(option: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const at = Date.parse(text);
  if (!Number.isNaN(at)) return new Date(at).toISOString();
  throw usageError(`${option}: '${shown(text)}' is no time such as 2030-01-31T12:00:00Z.`);
}

/** A number of an item or a job. */
export function readId(text: string | undefined, what: string): number {
  const id = Number(text);
  if (Number.isSafeInteger(id) && id > 0) return id;
  throw usageError(`'${shown(text ?? '')}' is not the number of ${what}.`);
}

function readBytes(path: string, io: Io): Uint8Array {
  try {
    return readFileSync(resolve(io.cwd, path));
  } catch (error) {
    throw unreadable(path, error);
  }
}
