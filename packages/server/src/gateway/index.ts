/** The gateway of a service: its providers, its connections, and the routers that it asks. */
import type { Logger } from 'pino';
import { guardedConnections } from '@redrive/engine/http';
import type { Clock, RoutingPolicy } from 'redrive';
import type { GatewayCounts } from '../observe/metrics/gateway-counts.ts';
import { watchFolder } from '../routing/folder-watch.ts';
import { PROVIDERS_FILE, readPolicyFile } from '../routing/policy-file.ts';
import type { RouterSet } from '../routing/router-set.ts';
import { allowOf } from '../settings/join.ts';
import type { Settings } from '../settings/settings.ts';
import type { Answer, WholeAnswer } from './answer.ts';
import { Gateway } from './gateway.ts';
import { ProviderRegistry } from './provider-registry.ts';
import type { GatewayRequest } from './provider-call.ts';

interface ServiceGatewayOptions {
  settings: Settings;
  dir: string;
  log: Logger;
  clock: Clock;
  counts: GatewayCounts;
}

type Routers = Pick<
  RouterSet<GatewayRequest, Promise<Answer | WholeAnswer>>,
  'get' | 'list' | 'rebuild'
>;

export interface ServiceGateway {
  /** The options of a router that calls providers. */
  optionsFor(policy: RoutingPolicy): ReturnType<ProviderRegistry['optionsFor']>;
  /** Whom it asks. Known after the routers are made, which need `optionsFor`. */
  attach(routers: Routers): void;
  readonly handle: Gateway['handle'];
  /** What is wrong with providers.json, in sentences. */
  readonly troubles: readonly string[];
  /** Reads the providers, and watches their file from now on. Before the routers start. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** A container is killed ten seconds after it was asked to stop. */
const GRACE_MS = 5000;

export function createServiceGateway(options: ServiceGatewayOptions): ServiceGateway {
  const { settings, dir, log, clock, counts } = options;
  const { routingGatewayConcurrency: concurrency, routingGatewayIdleMs: idleMs } = settings;
  const connections = guardedConnections({
    // The operator wrote the URLs: public ones need no further permission.
    allow: allowOf(settings),
    maxConnections: concurrency,
    maxConnectionsPerOrigin: concurrency,
  });
  let routers: Routers | undefined;
  const book = new ProviderRegistry({
    read: (known) => readPolicyFile(dir, PROVIDERS_FILE, known),
    env: settings.variables,
    idleMs,
    connections,
    log,
    onChange: () => routers?.rebuild(),
  });
  const gateway = new Gateway({
    routers: {
      get: (id) => routers?.get(id),
      has: (id) => routers?.list().some((one) => one.id === id) ?? false,
    },
    tokens: settings.tokens,
    maxKeptBytes: settings.routingGatewayMaxBodyBytes,
    concurrency,
    idleMs,
    log,
    finished: (finished) => counts.finished(finished),
  });
  counts.running = () => gateway.running;
  let watch: { close(): void } | undefined;
  return {
    optionsFor: (policy) => book.optionsFor(policy),
    attach(set) {
      routers = set;
    },
    handle: (request, response, refused) => gateway.handle(request, response, refused),
    get troubles() {
      return book.fault ? [book.fault.message] : [];
    },
    async start() {
      watch ??= watchFolder(dir, clock, () => void book.reload());
      await book.reload();
    },
    async stop() {
      watch?.close();
      await gateway.stop(GRACE_MS);
      connections.close();
    },
  };
}
