/** At most so many bytes, never half a character. */
export function cut(text: string, maxBytes: number): string {
  // Three bytes is the most that one UTF-16 unit takes.
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes - ELLIPSIS_BYTES));
  return `${text.slice(0, read)}…`;
}

const ELLIPSIS_BYTES = 3;
