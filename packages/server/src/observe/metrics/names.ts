/** `maxItems` as it is written on every wire: `max_items`. */
export function snakeCase(name: string): string {
  let known = written.get(name);
  if (known === undefined) {
    known = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    // Names come from source text, so they are few; whoever logs made-up ones must not fill this.
    if (written.size < MAX_KEPT) written.set(name, known);
  }
  return known;
}

const MAX_KEPT = 1000;
const written = new Map<string, string>();
