/**
 * Headers of NATS hold less than tasks may carry: a name is printable ASCII without a colon, a value is one line without
 * blanks at its ends. What does not fit is written as an encoded word (RFC 2047), and read back as what it was. Pure.
 */
const word = /^=\?utf-8\?b\?([A-Za-z0-9+/]*={0,2})\?=$/i;
const plainName = /^[!-9;-~]+$/;
// eslint-disable-next-line no-control-regex
const control = /[\u0000-\u001F\u007F]/;

export function writtenName(name: string): string {
  return plainName.test(name) && !word.test(name) ? name : encoded(name);
}

export function writtenValue(value: string): string {
  const isPlain = !control.test(value) && value === value.trim() && !word.test(value);
  return isPlain ? value : encoded(value);
}

/** A name or a value as it was before it was written. */
export function readText(text: string): string {
  const [, base64] = word.exec(text) ?? [];
  return base64 === undefined ? text : Buffer.from(base64, 'base64').toString();
}

/** The server acts on these: carried on, one could empty the stream or be refused for ever. */
export function isOfServer(name: string): boolean {
  return /^nats-/i.test(name);
}

/** The bytes of one header on the wire. */
export function headerBytes(name: string, value: string): number {
  return Buffer.byteLength(name) + Buffer.byteLength(value) + ': \r\n'.length;
}

function encoded(text: string): string {
  return `=?utf-8?b?${Buffer.from(text).toString('base64')}?=`;
}
