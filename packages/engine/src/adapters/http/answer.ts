/** What a server wrote back, as a text that can be stored and shown. */

/** How much of an answer is kept. */
const ANSWER_BYTES = 4096;

/** A secret whose beginning is among the bytes that are kept must be read to its end, to be recognised. */
export function bytesToRead(secrets: readonly string[]): number {
  // In a URL one character may be nine.
  return ANSWER_BYTES + 9 * Math.max(0, ...secrets.map((text) => text.length));
}

/** The first 4 KiB of a body that was read so far, without what `hidden` finds; undefined: it is empty. */
export function answerText(body: Uint8Array, hidden: RegExp | undefined): string | undefined {
  const decoder = new TextDecoder();
  // A character that was cut is left out; one that is broken shows as such.
  const isCut = body.byteLength > ANSWER_BYTES;
  const kept = decoder.decode(body.subarray(0, ANSWER_BYTES), { stream: isCut });
  const text = hidden && isCut ? new TextDecoder().decode(body) : kept;
  const shown = harmless(hideBefore(text, kept.length, hidden)).slice(0, ANSWER_BYTES);
  // The cut may have split a pair.
  return shown.replace(/[\uD800-\uDBFF]$/, '') || undefined;
}

/** Without secrets, and without characters that do something where the text is shown. */
export function harmlessMessage(message: string, hidden: RegExp | undefined): string {
  return harmless(hideBefore(message, message.length, hidden));
}

/** The text up to `end`; a secret that begins before it is replaced as a whole. */
function hideBefore(text: string, end: number, hidden: RegExp | undefined): string {
  if (!hidden) return text.slice(0, end);
  let shown = '';
  let from = 0;
  for (const match of text.matchAll(hidden)) {
    if (match.index >= end) break;
    shown += `${text.slice(from, match.index)}[secret]`;
    from = match.index + match[0].length;
  }
  return from < end ? shown + text.slice(from, end) : shown;
}

/** Terminals obey control characters, and marks of direction make a text read as another. No database stores NUL. */
function harmless(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(unsafe, '\u{FFFD}');
}

const unsafe = /(?![\t\n])[\p{Cc}\p{Bidi_Control}]/gu;
