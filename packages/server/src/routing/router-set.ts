/** The routers of a folder of policies: `<policy_id>.json` each, made again when its file changes. */
import type { Logger } from 'pino';
import {
  type AuditEntry,
  type Clock,
  createRouter,
  type RouteEvent,
  type RouteProvider,
  type Router,
  type RouterOptions,
  type RoutingPolicy,
  type StickyStore,
} from 'redrive';
import { ServiceError } from '../service-error.ts';
import { watchFolder } from './folder-watch.ts';
import {
  fault,
  faultOf,
  listPolicyFiles,
  MAX_POLICIES,
  parsePolicyText,
  type PolicyFile,
  type PolicyFileFault,
  readPolicyFile,
} from './policy-file.ts';

/** The options of one router. */
export type SetRouterOptions<Input, Output> = Partial<
  RouterOptions<Readonly<Record<string, RouteProvider<Input, Output>>>>
>;

interface RouterSetOptions<Input, Output> {
  /** The folder, ROUTING_DIR. */
  dir: string;
  log: Pick<Logger, 'info' | 'warn'>;
  clock: Clock;
  /** Where sticky sessions are kept. In memory where none is given. */
  sticky?: StickyStore | undefined;
  audit?: ((entry: AuditEntry) => unknown) | undefined;
  /** Hears what all routers tell, beside the listener that `optionsFor` gives. */
  on?: ((policyId: string, event: RouteEvent) => void) | undefined;
  /**
   * The options of the router of a policy: its provider functions, deadlines, listeners. Called for each policy when it is
   * loaded, and again by `rebuild`. A provider without a function gets one that throws `CANNOT_CALL_PROVIDER`. A
   * `ConfigError` that this throws counts as a fault of the policy's file.
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

export function createRouterSet<Input = unknown, Output = unknown>(
  options: RouterSetOptions<Input, Output>,
): RouterSet<Input, Output> {
  return new FolderRouters(options);
}

interface Entry<Input, Output> extends RouterSetEntry<Input, Output> {
  signature: string;
  /** Of the last good content. It has no router where `optionsFor` refused it. */
  policy: RoutingPolicy | undefined;
  /** Whether the fault is one of the file, which no other options heal. */
  isFileFault: boolean;
}

type Made<Input, Output> =
  | { router: Router<Input, Awaited<Output>> }
  | { refused: PolicyFileFault };

class FolderRouters<Input, Output> implements RouterSet<Input, Output> {
  fault: PolicyFileFault | undefined;
  readonly #options: RouterSetOptions<Input, Output>;
  #entries: ReadonlyMap<string, Entry<Input, Output>> = new Map();
  #reading: Promise<void> | undefined;
  #isAskedAgain = false;
  #watch: { close(): void } | undefined;
  #isClosed = false;

  constructor(options: RouterSetOptions<Input, Output>) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { dir, clock } = this.#options;
    // Before the first reading: a change during it is not missed.
    this.#watch ??= watchFolder(dir, clock, () => void this.reload());
    await this.reload();
  }

  /** One reading at a time. Whoever asks during one waits for the next: the folder may have changed since. */
  async reload(): Promise<void> {
    if (this.#reading) {
      this.#isAskedAgain = true;
      return this.#reading;
    }
    this.#reading = (async () => {
      do {
        this.#isAskedAgain = false;
        await this.#read();
      } while (this.#isAskedAgain && !this.#isClosed);
    })().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  get(policyId: string): Router<Input, Awaited<Output>> | undefined {
    return this.#entries.get(policyId)?.router;
  }

  list(): readonly RouterSetEntry<Input, Output>[] {
    return [...this.#entries.values()];
  }

  rebuild(): void {
    const rebuilt = Array.from(this.#entries.values(), (entry) => {
      if (!entry.policy) return entry;
      const made = this.#make(entry.policy, entry.router);
      if ('router' in made) {
        const loadedAtMs = entry.loadedAtMs ?? this.#options.clock.now();
        return {
          ...entry,
          ...made,
          loadedAtMs,
          fault: entry.isFileFault ? entry.fault : undefined,
        };
      }
      if (entry.isFileFault) return entry;
      this.#warn(entry.id, made.refused, entry.router !== undefined);
      return { ...entry, fault: made.refused };
    });
    this.#entries = new Map(rebuilt.map((entry) => [entry.id, entry]));
  }

  close(): void {
    this.#isClosed = true;
    this.#watch?.close();
    this.#watch = undefined;
  }

  async #read(): Promise<void> {
    const { dir } = this.#options;
    let listed: Awaited<ReturnType<typeof listPolicyFiles>>;
    try {
      listed = await listPolicyFiles(dir);
    } catch (error) {
      const { code = 'unknown error' } = error as NodeJS.ErrnoException;
      const message = `The folder ${dir} cannot be read (${code}). The policies of before stay in force. Check ROUTING_DIR.`;
      this.#setFault(fault('UNREADABLE_FILE', message));
      return;
    }
    const entries = new Map<string, Entry<Input, Output>>();
    for (const name of listed.names) {
      const before = this.#entries.get(name.slice(0, -'.json'.length));
      const file = await readPolicyFile(dir, name, before?.signature);
      if (this.#isClosed) return;
      if (file === 'same') entries.set(before!.id, before!);
      else if (file) entries.set(file.id, this.#load(file, before));
    }
    for (const id of this.#entries.keys()) {
      if (!entries.has(id)) this.#options.log.info({ policy: id }, 'routing policy removed');
    }
    this.#entries = entries;
    const { left } = listed;
    this.#setFault(
      left === 0
        ? undefined
        : fault(
            'TOO_MANY_POLICIES',
            `${dir} has ${left + MAX_POLICIES} policies. The first ${MAX_POLICIES} by name are used. Remove some.`,
          ),
    );
  }

  /** A bad file keeps the router of the last good content. */
  #load(file: PolicyFile, before: Entry<Input, Output> | undefined): Entry<Input, Output> {
    const { id, signature } = file;
    const { clock, log } = this.#options;
    const { policy, router, loadedAtMs } = before ?? {};
    const last = { id, signature, policy, router, loadedAtMs };
    const parsed = 'fault' in file ? file : parsePolicyText(file.text, id);
    if ('fault' in parsed) {
      // The same fault again: somebody has touched the file, or it cannot be read still.
      const isKnown = before?.fault?.message === parsed.fault.message;
      if (!isKnown) this.#warn(id, parsed.fault, router !== undefined);
      return { ...last, fault: parsed.fault, isFileFault: true };
    }
    const made = this.#make(parsed.policy, router);
    if ('refused' in made) {
      this.#warn(id, made.refused, router !== undefined);
      return { ...last, policy: parsed.policy, fault: made.refused, isFileFault: false };
    }
    const { version, fingerprint, warnings } = parsed.policy;
    const facts = { policy: id, version, fingerprint, warnings: warnings.length };
    log.info(facts, 'routing policy loaded');
    return {
      ...last,
      ...parsed,
      ...made,
      loadedAtMs: clock.now(),
      fault: undefined,
      isFileFault: false,
    };
  }

  #make(
    policy: RoutingPolicy,
    before: Router<Input, Awaited<Output>> | undefined,
  ): Made<Input, Output> {
    const { clock, sticky, audit, on, optionsFor } = this.#options;
    try {
      const own = optionsFor?.(policy);
      const router = createRouter(policy, {
        clock,
        sticky,
        audit,
        ...own,
        on: listenerOf(policy.id, on, own?.on),
        providers: { ...uncallable<Input, Output>(policy), ...own?.providers },
        continueFrom: before,
      });
      return { router };
    } catch (error) {
      return { refused: faultOf(error) };
    }
  }

  #warn(policy: string, { code, message }: PolicyFileFault, hasRouter: boolean): void {
    const then = hasRouter ? 'the last good one stays in force' : 'it has no policy yet';
    this.#options.log.warn({ policy, code, fault: message }, `bad routing policy: ${then}`);
  }

  /** Said once, not with every look. */
  #setFault(found: PolicyFileFault | undefined): void {
    if (found && found.message !== this.fault?.message) {
      this.#options.log.warn({ code: found.code }, found.message);
    }
    this.fault = found;
  }
}

function listenerOf(
  policyId: string,
  all: ((policyId: string, event: RouteEvent) => void) | undefined,
  own: ((event: RouteEvent) => unknown) | undefined,
): ((event: RouteEvent) => unknown) | undefined {
  if (!all) return own;
  return (event) => {
    all(policyId, event);
    return own?.(event);
  };
}

function uncallable<Input, Output>(
  policy: RoutingPolicy,
): Record<string, RouteProvider<Input, Output>> {
  return Object.fromEntries(
    policy.providers.map(({ name }) => [
      name,
      () => {
        const message = `This service decides by the policy '${policy.id}', but does not call its provider '${name}'. Set ROUTING_GATEWAY=on and list the provider in providers.json.`;
        throw new ServiceError('CANNOT_CALL_PROVIDER', message);
      },
    ]),
  );
}
