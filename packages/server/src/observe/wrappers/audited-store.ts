import type { AuditEvent, AuditSink, Store } from '@redrive/engine';
import { replaced, wrapped } from './wrapped.ts';

/** The same store, but for its audit sink: `written` hears of every event that it has taken. */
export function auditedStore(
  store: Store,
  written: (events: readonly AuditEvent[]) => void,
): Store {
  const { audit } = store;
  if (!audit) return store;
  const sink = auditedSink(audit, written);
  // Methods run as those of the store itself: it may have private fields.
  const own = wrapped(store, (_, method) => method);
  return new Proxy(own, {
    get: (target, name) =>
      name === 'audit' ? sink : (Reflect.get(target, name, target) as unknown),
  });
}

export function auditedSink(
  sink: AuditSink,
  written: (events: readonly AuditEvent[]) => void,
): AuditSink {
  return replaced(sink, {
    async write(events) {
      await sink.write(events);
      written(events);
    },
  });
}
