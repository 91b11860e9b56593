/** The providers of the gateway: read from their file, and again when it changes. A bad file keeps the last good one in force. */
import type { Logger } from 'pino';
import type { GuardedConnections } from '@redrive/engine/http';
import { ConfigError, type Fault, type RouteAttempt, type RoutingPolicy } from 'redrive';
import { didYouMean, nearest } from 'redrive/internal';
import { tooDeepAt } from '../json-depth.ts';
import { type Answer, isContent, type WholeAnswer } from './answer.ts';
import { callProvider, type GatewayRequest, sentBy } from './provider-call.ts';
import { statusOf } from './provider-failure.ts';
import { type FileFault, type Provider, readProviders } from './providers-file.ts';
import { mayRepeat } from './repeat.ts';

/** The file as it is now: `same` since the last look, undefined where there is none. */
type ReadFile = (known: string | undefined) => Promise<FileReading | 'same' | undefined>;

type FileReading = { signature: string } & (
  | { text: string }
  | { fault: { code: string; message: string } }
);

/** What is wrong with the file. */
interface BookFault {
  code: string;
  message: string;
  faults: readonly FileFault[];
}

interface ProviderRegistryOptions {
  read: ReadFile;
  /** For `${NAME}` in the file. */
  env: Readonly<Record<string, string | undefined>>;
  idleMs: number;
  connections: GuardedConnections;
  log: Pick<Logger, 'info' | 'warn'>;
  /** Called after other providers came into force: routers have to be made again. */
  onChange?: () => void;
}

const MAX_SHOWN = 20;

export class ProviderRegistry {
  fault: BookFault | undefined = missing;
  readonly #options: ProviderRegistryOptions;
  #providers: ReadonlyMap<string, Provider> = new Map();
  #signature: string | undefined;
  #told: string | undefined;

  constructor(options: ProviderRegistryOptions) {
    this.#options = options;
  }

  get names(): string[] {
    return [...this.#providers.keys()];
  }

  /** Which providers do not repeat a POST, and how they would. Undefined: all of them do. */
  get unrepeated(): { what: string; advice: string } | undefined {
    const all = [...this.#providers.values()].filter(({ retryUnsafe }) => !retryUnsafe);
    if (all.length === 0) return undefined;
    const shown = all.slice(0, MAX_SHOWN).map(({ name }) => name);
    const more = all.length > MAX_SHOWN ? ` and ${all.length - MAX_SHOWN} more` : '';
    return {
      what: `A POST that a provider may have executed is not repeated: ${shown.join(', ')}${more}.`,
      advice:
        'For LLM calls set "retry_unsafe": true in providers.json, or send an idempotency-key.',
    };
  }

  /** Never rejects. */
  async reload(): Promise<void> {
    const file = await this.#options.read(this.#signature);
    if (file === 'same') return;
    this.#signature = file?.signature;
    if (!file) return this.#blame(missing);
    if ('fault' in file) return this.#blame({ ...file.fault, faults: [] });
    const { env, idleMs, connections, log, onChange } = this.#options;
    if (tooDeepAt(file.text) !== undefined) return this.#blame(tooDeep);
    let data: unknown;
    try {
      data = JSON.parse(file.text.replace(/^\uFEFF/, ''));
    } catch {
      return this.#blame(notJson);
    }
    const refused = (url: URL) => connections.refused(url);
    const reading = readProviders(data, { env, idleMs, refused });
    if (!reading.ok) return this.#blame(faulty(reading.faults));
    this.#providers = reading.providers;
    this.fault = undefined;
    log.info({ providers: this.names }, 'providers of the gateway loaded');
    this.#tellUnrepeated();
    onChange?.();
  }

  /** Once, and again when it is about other providers. */
  #tellUnrepeated(): void {
    const { what, advice } = this.unrepeated ?? {};
    if (what !== undefined && what !== this.#told) this.#options.log.info(`${what} ${advice}`);
    this.#told = what;
  }

  /** What a router of this policy needs to call its providers. Throws a `ConfigError` that names those that are missing. */
  optionsFor(policy: RoutingPolicy) {
    const { connections } = this.#options;
    // Not one fault for each provider: the file was not taken, and the policy may be right.
    if (this.fault && this.#providers.size === 0) {
      throw new ConfigError('INVALID_CONFIG', this.fault.message, []);
    }
    const faults: Fault[] = [];
    const own = new Map<string, Provider>();
    for (const { name } of policy.providers) {
      const provider = this.#providers.get(name);
      if (provider) own.set(name, provider);
      else
        faults.push({
          path: `providers.${name}`,
          code: 'UNKNOWN_PROVIDER',
          message: this.#unknown(name),
        });
    }
    if (faults.length > 0) {
      throw new ConfigError('INVALID_CONFIG', 'The gateway cannot serve the policy:', faults);
    }
    const functions = Array.from(
      own.values(),
      (provider) =>
        [
          provider.name,
          (request: GatewayRequest, attempt: RouteAttempt) =>
            callProvider(connections, provider, request, attempt),
        ] as const,
    );
    return {
      providers: Object.fromEntries(functions),
      stream: { isContent },
      statusOf,
      refuse: ({ status }: Answer | WholeAnswer) => (status >= 400 ? status : undefined),
      mayRepeat: ({
        input,
        provider,
        refused,
      }: {
        input: GatewayRequest;
        provider: string;
        refused?: Answer | WholeAnswer | undefined;
      }) => mayRepeat(sentBy(input, own.get(provider)!, refused)),
    };
  }

  #unknown(name: string): string {
    const { names, fault } = this;
    const hint = didYouMean(nearest(name, names));
    const there = names.length > 0 ? ` It has: ${names.slice(0, 20).join(', ')}.` : '';
    if (!fault) return `providers.json has no provider '${name}'.${there}${hint}`;
    return `The last good providers.json has no provider '${name}'.${there}${hint} ${fault.message}`;
  }

  #blame(fault: BookFault): void {
    this.fault = fault;
    const then =
      this.#providers.size > 0 ? 'the last good one stays in force' : 'there are no providers yet';
    this.#options.log.warn(
      { code: fault.code, fault: fault.message },
      `bad providers.json: ${then}`,
    );
    // Policies that wait for providers say why they have none.
    if (this.#providers.size === 0) this.#options.onChange?.();
  }
}

const missing: BookFault = {
  code: 'UNREADABLE_FILE',
  message:
    'There is no providers.json in ROUTING_DIR. Write one with the base_url of every provider.',
  faults: [],
};

const notJson: BookFault = {
  code: 'INVALID_JSON',
  message: 'providers.json was not taken: it is not JSON.',
  faults: [],
};

const tooDeep: BookFault = {
  code: 'JSON_TOO_DEEP',
  message: 'providers.json was not taken: it is nested more than 512 levels deep.',
  faults: [],
};

function faulty(faults: readonly FileFault[]): BookFault {
  const [first] = faults;
  const more = faults.length > 1 ? ` And ${faults.length - 1} more.` : '';
  const message = `providers.json was not taken, it has faults: ${first?.path}: ${first?.message}${more}`;
  return { code: 'INVALID_PROVIDERS', message, faults };
}
