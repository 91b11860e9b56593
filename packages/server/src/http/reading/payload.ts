/** Payloads of others on the wire: as JSON where that loses nothing, as base64 where it is anything else. */
import { differenceOf, type Difference, type InboxItem } from '@redrive/engine';
import { readPayload } from './exact-json.ts';

const MAX_SHOWN = 1024 * 1024;

type ShownPayload = { payload: unknown } | { payload_base64: string };

export function showPayload(bytes: Uint8Array): ShownPayload {
  const read = bytes.length <= MAX_SHOWN ? readPayload(bytes) : undefined;
  if (read) return { payload: read.value };
  const { buffer, byteOffset, byteLength } = bytes;
  return { payload_base64: Buffer.from(buffer, byteOffset, byteLength).toString('base64') };
}

/** The bytes of a base64 text; undefined: it is none. */
export function readBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined;
  const bytes = Buffer.from(text, 'base64');
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  // What is no base64 is left out in silence there, and the rest is shorter than it has to be.
  return bytes.length === (text.length / 4) * 3 - padding ? bytes : undefined;
}

/** What an edit changes. Payloads that are not shown as JSON are told apart by their size alone. */
export function showDifference(item: InboxItem): Difference[] {
  const { edit } = item;
  if (!edit?.payload || [item.payload, edit.payload].every(isShownAsJson))
    return differenceOf(item);
  const { payload, ...rest } = edit;
  const [before, after] = [item.payload, payload].map(({ length }) => `${length} bytes`);
  const ofPayload = Buffer.from(item.payload).equals(payload)
    ? []
    : [{ path: '/payload', before, after }];
  return [...ofPayload, ...differenceOf({ ...item, edit: rest })];
}

function isShownAsJson(bytes: Uint8Array): boolean {
  return bytes.length <= MAX_SHOWN && readPayload(bytes) !== undefined;
}
