const MOST = 1000;

/**
 * The same function, which remembers what it made of the last texts: addresses repeat. Only for what depends on nothing
 * but the text, and is never changed by those who get it.
 */
export function remember<T>(make: (text: string) => T): (text: string) => T {
  const known = new Map<string, { made: T }>();
  return (text) => {
    const found = known.get(text);
    if (found) return found.made;
    const made = make(text);
    // All at once: what is in use comes back by itself.
    if (known.size >= MOST) known.clear();
    known.set(text, { made });
    return made;
  };
}
