/** Entities of a file or of the standard input: one JSON document, or one per line. */
import { JsonTooDeep, parsePlainly } from '../http/reading/exact-json.ts';
import { CommandError, exits, type Io } from './command.ts';
import { chunksOf, type Line, linesOf } from './terminal/lines.ts';
import { shown } from './terminal/safe-text.ts';

/** The largest entity; the longest line. */
const MAX_BYTES = 32 * 1024 * 1024;

export type Read =
  | { line: number; entity: unknown }
  | { line: number; fault: { code: string; message: string } };

/**
 * Where the first line is JSON, every line is an entity, and a line that is none spoils no other. Else the whole is
 * tried as one entity over many lines.
 */
export async function* entitiesOf(path: string, io: Io): AsyncGenerator<Read, void, undefined> {
  const lines = linesOf(await chunksOf(path, io), MAX_BYTES);
  const begun: Line[] = [];
  let bytes = 0;
  let isWhole = true;
  // Not with `for await`: leaving it early would end the lines.
  for (let next = await lines.next(); !next.done; next = await lines.next()) {
    begun.push(next.value);
    bytes += next.value.text?.length ?? MAX_BYTES;
    isWhole = bytes < MAX_BYTES && !(begun.length === 1 && 'entity' in readLine(next.value));
    if (!isWhole) break;
  }
  if (begun.length === 0) throw empty(path);
  const reads = isWhole ? readDocument(begun, path) : begun.map(readLine);
  yield* reads;
  for await (const line of lines) yield readLine(line);
}

/** One document, or lines after all where one of them is an entity by itself. */
function readDocument(lines: readonly Line[], path: string): Read[] {
  let text = '';
  let at = 1;
  for (const line of lines) {
    // Blank lines are put back, so that a fault is told with the line that it is in.
    text += '\n'.repeat(line.number - at) + line.text!;
    at = line.number;
  }
  const whole = parse(text, lines[0]!.number);
  if ('entity' in whole) return [whole];
  const reads = lines.map(readLine);
  if (reads.some(isEntity)) return reads;
  throw refused(whole.fault.code, `${sourceOf(path)}: ${whole.fault.message}`);
}

function isEntity(read: Read): boolean {
  return 'entity' in read && typeof read.entity === 'object' && read.entity !== null;
}

function readLine({ number, text }: Line): Read {
  return text === undefined
    ? { line: number, fault: { code: 'TOO_LARGE', message: TOO_LARGE } }
    : parse(text, number);
}

function parse(text: string, line: number): Read {
  try {
    return { line, entity: parsePlainly(text) };
  } catch (error) {
    const isDeep = error instanceof JsonTooDeep;
    const { message } = error as Error;
    const fault = isDeep
      ? { code: 'JSON_TOO_DEEP', message }
      : { code: 'INVALID_JSON', message: `It is not JSON: ${sentence(message, text)}` };
    return { line, fault };
  }
}

const TOO_LARGE = `The entity is over ${MAX_BYTES / 1024 / 1024} MiB, which is the most that is read.`;

function sourceOf(path: string): string {
  return path === '-' ? 'The standard input' : path;
}

function empty(path: string): CommandError {
  return refused(
    'INVALID_JSON',
    `${sourceOf(path)} is empty. Write an entity as a JSON object into it, or one per line.`,
  );
}

/** Of a single line the place within it is enough: its own number is told beside it. */
function sentence(message: string, text: string): string {
  const place = text.includes('\n') ? message : message.replace(/ \(line 1 column \d+\)/, '');
  return shown(place).replace(/\.?$/, '.');
}

function refused(code: string, message: string): CommandError {
  return new CommandError(message, { exit: exits.usage, code });
}
