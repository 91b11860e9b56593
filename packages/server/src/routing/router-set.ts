/** The routers of a folder of policies: `<policy_id>.json` each, made again when its file changes. */
import type { AuditEntry, Clock, Router, RouteProvider, RouterOptions, StickyStore } from 'redrive';
import type { RoutingPolicy } from 'redrive';
import type { Logger } from 'pino';

/** The gateway's file in the same folder. It is no policy. */
export const PROVIDERS_FILE = 'providers.json';

/** The options of one router. Options that are left out are the set's. */
export type SetRouterOptions<Input, Output> = Partial<
  RouterOptions<Readonly<Record<string, RouteProvider<Input, Output>>>>
>;

export interface RouterSetOptions<Input, Output> {
  /** The folder, ROUTING_DIR. */
  dir: string;
  log: Pick<Logger, 'info' | 'warn'>;
  clock: Clock;
  /** Where sticky sessions are kept. In memory where none is given. */
  sticky?: StickyStore | undefined;
  audit?: ((entry: AuditEntry) => unknown) | undefined;
  /**
   * The options of the router of a policy: its provider functions, deadlines, listeners. Called for each policy when it is
   * loaded, and again by `rebuild`. A provider without a function gets one that throws `NO_GATEWAY`. An error that this
   * throws counts as a fault of the policy's file.
   */
  optionsFor?: ((policy: RoutingPolicy) => SetRouterOptions<Input, Output>) | undefined;
}

/** One file of the folder. */
export interface RouterSetEntry<Input, Output> {
  /** The name of the file without `.json`. */
  readonly id: string;
  /** By the last good content; undefined where there was none yet. */
  readonly router: Router<Input, Awaited<Output>> | undefined;
  /** Wall time in ms when the router's policy was read; undefined without a router. */
  readonly loadedAtMs: number | undefined;
  /** What is wrong with the content that the file has now. The router is the one of the last good content. */
  readonly fault: PolicyFileFault | undefined;
}

export interface PolicyFileFault {
  code: string;
  message: string;
  /** Every fault of the policy with its JSON path, at most 100. */
  faults: readonly { path: string; code: string; message: string }[];
}

export interface RouterSet<Input = unknown, Output = unknown> {
  /** Reads the folder, then watches it. A folder or a file that cannot be read is a fault, never a rejection. */
  start(): Promise<void>;
  /** Reads the folder now. */
  reload(): Promise<void>;
  /** The router of a policy. Ask for it with each request: a reload makes another one, which takes over the state. */
  get(policyId: string): Router<Input, Awaited<Output>> | undefined;
  /** All files, by id. */
  list(): readonly RouterSetEntry<Input, Output>[];
  /** What is wrong with the folder as a whole: it cannot be read, or it has too many files. */
  readonly fault: PolicyFileFault | undefined;
  /** Makes all routers again with what `optionsFor` says now. They take over the state of the providers. */
  rebuild(): void;
  /** Ends the watch. Routers that were handed out go on working. */
  close(): void;
}

export declare function createRouterSet<Input = unknown, Output = unknown>(
  options: RouterSetOptions<Input, Output>,
): RouterSet<Input, Output>;
