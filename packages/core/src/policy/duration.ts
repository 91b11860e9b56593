/** A number of ms, or a text: `'250ms'`, `'2s'`, `'5m'`, `'1h'`, `'1d'`. */
export type Duration = number | `${number}${keyof typeof unitsMs}`;

/** A hundred years. Longer is surely a mistake of units. */
export const MAX_DURATION_MS = 3_153_600_000_000;

const unitsMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The duration in ms, or NaN when it is none: negative, not finite, too long, not understood. */
export function durationMs(value: unknown): number {
  let ms = NaN;
  if (typeof value === 'number') ms = value;
  else if (typeof value === 'string') {
    const match = /^(\d{1,15}(?:\.\d{1,9})?)(ms|s|m|h|d)$/.exec(value);
    // Rounded, since 1.001 * 1000 is not quite 1001.
    if (match)
      ms = Math.round(Number(match[1]) * unitsMs[match[2] as keyof typeof unitsMs] * 1e3) / 1e3;
  }
  // Adding nothing makes a 0 of -0, which JSON would change.
  return ms >= 0 && ms <= MAX_DURATION_MS ? ms + 0 : NaN;
}
