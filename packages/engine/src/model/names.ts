/** The order of names in every store: by their bytes. It differs from that of JavaScript past the first plane of Unicode. */
export function byName(a: string, b: string): number {
  if (a === b) return 0;
  return isPlain(a) && isPlain(b)
    ? a < b
      ? -1
      : 1
    : Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Before all names that begin so, and after nearly all others that come before them. */
export function justBefore(prefix: string): string {
  const last = Array.from(prefix).at(-1);
  const code = last?.codePointAt(0) ?? 0;
  if (last === undefined || code === 0) return prefix.slice(0, -1);
  // Surrogates stand for no character of their own.
  const before = code === 0xe000 ? 0xd7ff : code - 1;
  return `${prefix.slice(0, -last.length)}${String.fromCodePoint(before)}\u{10ffff}`;
}

/** Without surrogates both orders are the same. */
function isPlain(name: string): boolean {
  return !/[\uD800-\uDFFF]/.test(name);
}
