/** Where a list goes on, as a text that means nothing to whoever holds it. */
import { Problem } from '../problem.ts';

/** Lists of different things: a cursor of one is none of another. */
type List =
  | 'tasks'
  | 'items'
  | 'groups'
  | 'jobs'
  | 'members'
  | 'audit'
  | 'lanes'
  | 'notifications'
  | 'attempts';

const MAX_NAME = 500;
export const MAX_CURSOR = 1000;

export function cursorOf(list: List, ...place: readonly (number | string)[]): string {
  return Buffer.from(JSON.stringify([list, ...place])).toString('base64url');
}

/** The one number that a cursor of this list holds; undefined: from the beginning. */
export function placeOf(list: List, cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const [place, ...more] = partsOf(list, cursor);
  if (!isPlace(place) || more.length > 0) throw invalidCursor();
  return place;
}

/** The one text that a cursor of this list holds; undefined: from the beginning. */
export function nameOf(list: List, cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const [name, ...more] = partsOf(list, cursor);
  if (!isName(name) || more.length > 0) throw invalidCursor();
  return name;
}

/** A number and a text. */
export function pairOf(list: List, cursor: string | undefined): [number, string] | undefined {
  if (cursor === undefined) return undefined;
  const [place, name, ...more] = partsOf(list, cursor);
  if (!isPlace(place) || !isName(name) || more.length > 0) throw invalidCursor();
  return [place, name];
}

function partsOf(list: List, cursor: string): unknown[] {
  if (cursor.length > MAX_CURSOR) throw invalidCursor();
  let read: unknown;
  try {
    read = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
  } catch {
    throw invalidCursor();
  }
  if (!Array.isArray(read) || read[0] !== list) throw invalidCursor();
  return read.slice(1) as unknown[];
}

function isPlace(place: unknown): place is number {
  return Number.isSafeInteger(place) && (place as number) >= 0;
}

/** What the engine takes for a name. */
function isName(name: unknown): name is string {
  if (typeof name !== 'string' || name === '' || name.length > MAX_NAME) return false;
  return !name.includes('\0') && name.isWellFormed();
}

function invalidCursor(): Problem {
  const message = 'It is not what a list of this kind gave as next_cursor. Begin without one.';
  return new Problem('INVALID_CURSOR', `The cursor is broken. ${message}`, {
    faults: [{ in: 'query', path: '/cursor', code: 'INVALID_CURSOR', message }],
  });
}
