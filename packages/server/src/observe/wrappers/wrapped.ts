/** Something that is called as a method of its owner. */
type Method = (...args: unknown[]) => unknown;

/**
 * The same object, with its methods seen by `around`, once each. They run as its own and its getters are asked anew each
 * time, so private fields work; what it calls of itself is not seen, and what it lacks is lacking here too.
 */
export function wrapped<T extends object>(
  target: T,
  around: (name: string, method: Method) => Method,
): T {
  const seen = new Map<string, { method: unknown; call: Method }>();
  return new Proxy(target, {
    get(_, name) {
      const method: unknown = Reflect.get(target, name, target);
      if (typeof name !== 'string' || typeof method !== 'function') return method;
      const known = seen.get(name);
      // Another function by now: somebody has replaced it.
      if (known && known.method === method) return known.call;
      const call = around(name, (...args) => (method as Method).apply(target, args));
      seen.set(name, { method, call });
      return call;
    },
  });
}

/** The same object, but for the methods that are given in place of its own. */
export function replaced<T extends object>(target: T, instead: Partial<T>): T {
  return wrapped(
    target,
    (name, method) => (instead[name as keyof T] as Method | undefined) ?? method,
  );
}
