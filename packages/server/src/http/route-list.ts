import type { RouteOptions } from 'fastify';

interface Route {
  method: string;
  pattern: RegExp;
  /** How many of its parts may be anything. */
  parameters: number;
}

/** Which methods a path has: to tell a wrong method from a wrong path. */
export class RouteList {
  readonly #routes: Route[] = [];

  /** Refuses one that does not say who may use it: it must not be open by mistake. */
  add({ method, url, config }: RouteOptions): void {
    if (config?.role === undefined) throw new Error(`${String(method)} ${url} needs a role.`);
    const pattern = new RegExp(`^${url.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+')}$`);
    const parameters = url.split(':').length - 1;
    for (const one of [method].flat()) this.#routes.push({ method: one, pattern, parameters });
  }

  methodsOf(path: string): string[] {
    const found = this.#routes.filter(({ pattern }) => pattern.test(path));
    // `/bulk/preview` is itself, and no `/bulk/:id`.
    const least = Math.min(...found.map(({ parameters }) => parameters));
    const nearest = found.filter(({ parameters }) => parameters === least);
    return [...new Set(nearest.map(({ method }) => method))].sort();
  }
}
