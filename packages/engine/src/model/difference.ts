/** What an operator's edit changes in a message. Pure. */
import type { InboxItem } from '../ports/inbox.ts';

/** One place that differs. `before` or `after` is absent where there was or will be nothing. */
export interface Difference {
  /** A JSON pointer into the payload (`/payload/items/0/price`), `/headers/name`, or `/destination`. */
  path: string;
  before?: unknown;
  after?: unknown;
}

const MAX_DIFFERENCES = 1000;
/** Deeper than this nobody looks, and a function that calls itself cannot. */
const MAX_DEPTH = 100;
/** Larger payloads are told apart by their size alone. */
const MAX_COMPARED = 4 * 1024 * 1024;

/** What the edit on an item changes, in the order of the message; at most 1000 places. */
export function differenceOf(item: InboxItem): Difference[] {
  const { edit, context, destination } = item;
  if (!edit) return [];
  const found: Difference[] = [];
  if (edit.payload) comparePayloads(item.payload, edit.payload, found);
  if (edit.headers) compare('/headers', context?.headers ?? {}, edit.headers, found);
  if (edit.destination) {
    const [before, after] = [destination, edit.destination].map(
      (one) => `${one.kind}:${one.address}`,
    );
    compare('/destination', before, after, found);
  }
  return found;
}

function comparePayloads(before: Uint8Array, after: Uint8Array, found: Difference[]): void {
  if (Buffer.from(before).equals(after)) return;
  const [own, other] = [readable(before), readable(after)];
  const count = found.length;
  if (own && other) compare('/payload', own.value, other.value, found);
  // Other spaces, or digits beyond what a number holds.
  const isUnseen = found.length === count;
  if (isUnseen && own && other) compare('/payload', linesOf(own.text), linesOf(other.text), found);
  else if (isUnseen) found.push({ path: '/payload', before: sizeOf(before), after: sizeOf(after) });
}

/** JSON as what it says, other text as its lines; undefined: neither. */
function readable(bytes: Uint8Array): { value: unknown; text: string } | undefined {
  if (bytes.length > MAX_COMPARED) return undefined;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
  try {
    return { value: JSON.parse(text) as unknown, text };
  } catch {
    return { value: linesOf(text), text };
  }
}

function linesOf(text: string): string[] {
  return text.split('\n');
}

function compare(
  path: string,
  before: unknown,
  after: unknown,
  found: Difference[],
  depth = 0,
): void {
  if (found.length >= MAX_DIFFERENCES || Object.is(before, after)) return;
  if (depth > MAX_DEPTH) {
    found.push({ path, before: 'too deep to compare', after: 'too deep to compare' });
    return;
  }
  if (!isTree(before) || !isTree(after) || Array.isArray(before) !== Array.isArray(after)) {
    found.push({
      path,
      ...(before === undefined ? {} : { before }),
      ...(after === undefined ? {} : { after }),
    });
    return;
  }
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [own, other] = [before, after].map((tree) =>
      Object.hasOwn(tree, key) ? (tree as Record<string, unknown>)[key] : undefined,
    );
    compare(
      `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`,
      own,
      other,
      found,
      depth + 1,
    );
  }
}

function isTree(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function sizeOf(bytes: Uint8Array): string {
  return `${bytes.length} bytes`;
}
