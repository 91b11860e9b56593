import { notify } from './notify.ts';

/** Frees what a result holds when nobody will use it: a disposable, or the body of a Response. */
export function dispose(result: unknown): void {
  if (typeof result !== 'object' || result === null) return;
  notify('disposing of a result', release, result);
}

function release(result: object): unknown {
  const { asyncDispose, dispose: syncDispose } = Symbol;
  const disposable = result as Record<symbol, (() => unknown) | undefined>;
  // Old browsers lack the symbols; `undefined` would read a property of that name.
  if (asyncDispose && typeof disposable[asyncDispose] === 'function')
    return disposable[asyncDispose]();
  if (syncDispose && typeof disposable[syncDispose] === 'function')
    return disposable[syncDispose]();
  const { body } = result as { body?: { locked?: boolean; cancel?: () => unknown } | null };
  return body && !body.locked && typeof body.cancel === 'function' ? body.cancel() : undefined;
}
