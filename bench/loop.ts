/** Imported anew for each contestant, so that each has its own compiled copy. */

export async function loop(call: () => unknown, calls: number, expected: unknown): Promise<void> {
  for (let i = 0; i < calls; i++) {
    const result = await call();
    if (result !== expected) throw wrong(result, expected);
  }
}

export function loopSync(call: () => unknown, calls: number, expected: unknown): void {
  for (let i = 0; i < calls; i++) {
    const result = call();
    if (result !== expected) throw wrong(result, expected);
  }
}

function wrong(result: unknown, expected: unknown): Error {
  return new Error(`a call came to ${String(result)} instead of ${String(expected)}`);
}
