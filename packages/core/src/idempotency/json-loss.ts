/** A value that JSON would replace without a word. */
export interface JsonLoss {
  /** `a Map`, `NaN`. */
  lost: string;
  /** Where: `items.2.tags`, or empty for the value itself. */
  path: string;
}

/**
 * The first value that JSON would replace: a Map or a Set, which it writes as `{}`, NaN or Infinity, which it writes as null. What
 * has a `toJSON` is left to it. Nothing is allocated where nothing is lost.
 *
 * For values that `JSON.stringify` has written: a value that contains itself has no end.
 */
export function jsonLoss(value: unknown): JsonLoss | undefined {
  if (typeof value === 'number') {
    return Number.isFinite(value) ? undefined : { lost: String(value), path: '' };
  }
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const loss = jsonLoss(value[i]);
      if (loss) return under(String(i), loss);
    }
    return undefined;
  }
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return undefined;
  // Most objects are plain, and to ask for their tag costs more than the rest.
  const isPlain = Object.getPrototypeOf(value) === Object.prototype;
  if (!isPlain) {
    const tag = Object.prototype.toString.call(value).slice('[object '.length, -1);
    if (tag === 'Map' || tag === 'Set') return { lost: `a ${tag}`, path: '' };
  }
  for (const name in value) {
    // JSON leaves out what an object inherits.
    if (!isPlain && !Object.hasOwn(value, name)) continue;
    const loss = jsonLoss((value as Record<string, unknown>)[name]);
    if (loss) return under(name, loss);
  }
  return undefined;
}

function under(name: string, { lost, path }: JsonLoss): JsonLoss {
  return { lost, path: path === '' ? name : `${name}.${path}` };
}
