/** What the workspace knows of a kind of server: how to find one on this machine, and how to get one. */

export type Found =
  | { readonly state: 'found'; readonly path: string; readonly version: string }
  | { readonly state: 'missing'; readonly why: string; readonly wayOut: string };

export interface Service<Name extends string = string> {
  readonly name: Name;
  /** Who cannot run without it. */
  readonly neededBy: string;
  /** Looks, and changes nothing. */
  find(): Found;
  /** Tries to have it found afterwards. Says what it does, throws nothing: `find` is the verdict. */
  get(kit: GetKit): void;
  /** Starts one that a whole test run can share. Servers that only make sense with another have none. */
  share?(): Promise<SharedServer>;
}

export interface GetKit {
  /** For what is built or downloaded: outside the checkout, kept between runs. */
  readonly cacheFolder: string;
  readonly say: (line: string) => void;
}

export interface SharedServer {
  readonly url: string;
  stop(): Promise<void>;
}

export function missing(why: string, wayOut: string): Found {
  return { state: 'missing', why, wayOut };
}

/** The server's program, or an error that says why there is none and what to do. */
export function need(service: Service): { path: string; version: string } {
  const found = service.find();
  if (found.state === 'found') return found;
  throw new Error(`${service.name} is missing: ${found.why}. To have it: ${found.wayOut}`);
}
