const MAX_SHOWN = 100;

/**
 * What JSON would drop from a value without an error, and where: "a Map at items[2].tags", "NaN at total". JSON writes a Map or
 * a Set as `{}`, and NaN or Infinity as null. Undefined where nothing of the kind is found.
 *
 * For values that `JSON.stringify` has written: a value that contains itself has no end. What has a `toJSON` is left to it.
 */
export function jsonLoss(value: unknown): string | undefined {
  const found = lossIn(value);
  if (found === undefined) return undefined;
  const path = found.path.replace(/^\./, '').slice(0, MAX_SHOWN);
  return path === '' ? found.lost : `${found.lost} at ${path}`;
}

interface Loss {
  lost: string;
  path: string;
}

function lossIn(value: unknown): Loss | undefined {
  if (typeof value === 'number') {
    return Number.isFinite(value) ? undefined : { lost: String(value), path: '' };
  }
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const loss = lossIn(value[i]);
      if (loss) return { lost: loss.lost, path: `[${i}]${loss.path}` };
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
    const loss = lossIn((value as Record<string, unknown>)[name]);
    if (loss) return { lost: loss.lost, path: `.${name}${loss.path}` };
  }
  return undefined;
}
