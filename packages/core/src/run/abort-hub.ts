import { notify } from './notify.ts';

export interface Abortable {
  onAbort(): void;
}

/**
 * One listener per signal, however many calls share it, as calls share the signal of a server that shuts down: a signal
 * walks its whole list for each listener that comes or goes, and Node 20 warns of a leak past ten.
 */
class Hub {
  readonly calls = new Set<Abortable>();

  handleEvent(): void {
    // A copy: calls that end leave the set meanwhile.
    Array.from(this.calls).forEach((call) => notify('an abort', () => call.onAbort()));
  }
}

const hubs = new WeakMap<AbortSignal, Hub>();

export function listen(signal: AbortSignal, call: Abortable): void {
  let hub = hubs.get(signal);
  if (!hub) hubs.set(signal, (hub = new Hub()));
  if (hub.calls.size === 0) signal.addEventListener('abort', hub);
  hub.calls.add(call);
}

export function unlisten(signal: AbortSignal, call: Abortable): void {
  const hub = hubs.get(signal);
  if (hub?.calls.delete(call) && hub.calls.size === 0) signal.removeEventListener('abort', hub);
}
