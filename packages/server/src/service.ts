/** One lifecycle for everything: HTTP first, then the store for as long as it takes, and at the end all of it drained. */
import { lookup } from 'node:dns/promises';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { isEngineError } from '@redrive/engine';
import { delayFor, type Policy } from 'redrive';
import { olderNode, systemClock } from 'redrive/internal';
import { databaseFile } from './settings/data-dir.ts';
import type { Settings } from './settings/settings.ts';
import { ServiceError } from './service-error.ts';
import { heldBy, moveBegun, moveBegunIn, movedFiles, rescuedFiles } from './upkeep/left-behind.ts';
import type { WiringOptions } from './wiring-options.ts';
import type { Wired } from './wiring.ts';

export interface Service {
  /** Listens, and begins to look for the store. */
  start(): Promise<{ url: string }>;
  /** Brings to an end what runs. Called again: hurries. */
  stop(): Promise<void>;
  /** True once its store is open and it works; a broker may still be away: `/health/ready` tells. False: it was stopped before. It rejects where no waiting would help. */
  readonly ready: Promise<boolean>;
}

export type ServiceOptions = WiringOptions;

/** Between two looks for a store that is not there. */
const pauses: Policy = { base: '200ms', cap: '10s', multiplier: 2, jitter: 'equal' };
/** Between two looks whether it is ready. */
const LOOK_MS = 200;
/** How long open requests have to come to their end. */
const CLOSE_MS = 1500;
/** A database of notifications that is away must not keep the rest from its work. */
const NOTIFICATIONS_MS = 1000;

/** What trying again does not heal. */
const hopeless = new Set([
  'SCHEMA_TOO_NEW',
  'TABLE_NOT_OURS',
  'STORE_NOT_LOCAL',
  'STORE_CORRUPT',
  'INVALID_ENGINE',
  'MOVE_BEGUN',
]);

/** As `engines` of package.json says. */
const NEEDED_NODE = '22.18';

export function createService(settings: Settings, options: ServiceOptions = {}): Service {
  const older = olderNode('@redrive/server', NEEDED_NODE, process.versions.node);
  if (older !== undefined) throw new ServiceError('NODE_TOO_OLD', older);
  const clock = options.clock ?? systemClock;
  const stopping = new AbortController();
  const ready = Promise.withResolvers<boolean>();
  // Whoever does not ask is not told by a crash.
  ready.promise.catch(() => undefined);
  let wired: Wired | undefined;
  let app: FastifyInstance | undefined;
  let started: Promise<{ url: string }> | undefined;
  let stopped: Promise<void> | undefined;

  return {
    ready: ready.promise,
    start() {
      if (stopped)
        return Promise.reject(new ServiceError('SERVICE_STOPPED', 'The service was stopped.'));
      return (started ??= start());
    },
    stop() {
      // The engine takes a second call for haste.
      if (stopped) void wired?.engine.stop().catch(() => undefined);
      return (stopped ??= stop());
    },
  };

  async function start(): Promise<{ url: string }> {
    await makeFolder(settings);
    const isFresh = !existsSync(databaseFile(settings));
    // Before anybody can ask: what is stored in such a file would be left behind.
    if (settings.databaseUrl === undefined && (await moveBegunIn(databaseFile(settings)))) {
      throw moveUnderWay(settings);
    }
    // Not before: whoever imports this for its types, or to write a configuration file, need not wait for all of it.
    const [{ wire }, { buildApp }] = await Promise.all([
      import('./wiring.ts'),
      import('./http/app.ts'),
    ]);
    const parts = (wired = await wire(settings, options));
    const { observers, engine, instance, criteria, routing, gateway, idempotency } = parts;
    const notifications = parts.notifications?.service;
    const { log, feed, metrics, health } = observers;
    const known = { settings, instance, engine, clock, log, feed, metrics, health };
    const context = { ...known, criteria, routing, gateway, notifications, idempotency };
    // Before anybody can ask by them.
    await gateway?.start();
    await routing.start();
    const listening = (app = await buildApp(context));
    const url = await listening.listen({ host: await addressOf(settings), port: settings.port });
    log.info({ url }, 'listening');
    if (isFresh) warnOfMoved(settings, log);
    void begin(parts);
    return { url };
  }

  /** The engine, as soon as its store can be had. */
  async function begin(parts: Wired): Promise<void> {
    const { engine, store, observers, criteria, keyPruner, member, responder, notifications } =
      parts;
    const { log } = observers;
    for (let attempt = 1; !stopping.signal.aborted; attempt++) {
      try {
        await store.open();
        if (await moveBegun(store)) {
          await store.close();
          throw moveUnderWay(settings);
        }
        await engine.start();
        observers.started();
        criteria.started();
        keyPruner.start();
        if (notifications) await within(NOTIFICATIONS_MS, startNotifications(notifications));
        // Not before: all members of a deployment answer by the seed that the store holds.
        member?.start();
        responder?.start();
        void announce(parts);
        void warnOfLeftBehind(settings, log);
        void warnOfRescued(settings, log);
        ready.resolve(true);
        return;
      } catch (error) {
        if (isHopeless(error)) {
          ready.reject(error);
          return;
        }
        if (stopping.signal.aborted) break;
        const delayMs = delayFor(pauses, { attempt, random: Math.random() });
        log.warn({ err: error, attempt, delay_ms: delayMs }, 'not ready yet, trying again');
        await pause(delayMs);
      }
    }
    ready.resolve(false);
  }

  /** `ready` is in the log when `/health/ready` says so, and not before. */
  async function announce({ observers: { log, health } }: Wired): Promise<void> {
    for (let looks = 0; !stopping.signal.aborted; looks++) {
      const { ready: isReady, checks } = await health.ready();
      if (isReady) return log.info('ready');
      if (looks === 0) {
        const missing = checks.filter(({ ok }) => !ok);
        const parts = missing.map(({ name, detail }) => (detail ? `${name} (${detail})` : name));
        log.warn(`started, and not ready yet: waiting for ${parts.join(', ')}`);
      }
      await pause(LOOK_MS);
    }
  }

  async function startNotifications(notifications: NonNullable<Wired['notifications']>) {
    try {
      await notifications.start();
    } catch (error) {
      if (stopping.signal.aborted) return;
      wired?.observers.log.error({ err: error }, 'notifications could not be started');
    }
  }

  async function stop(): Promise<void> {
    stopping.abort();
    await started?.catch(() => undefined);
    if (!wired) return;
    const { observers, engine, criteria, routing, gateway, keyPruner } = wired;
    const { member, responder, notifications } = wired;
    observers.log.info('stopping: what runs is brought to its end');
    observers.stopping();
    // Ends the streams of events, which would keep their connections open.
    observers.stop();
    const closed = app
      ?.close()
      .catch((err: unknown) => observers.log.warn({ err }, 'HTTP did not close well'));
    const answered = within(CLOSE_MS, Promise.resolve(closed));
    await Promise.all([answered, gateway?.stop(), member?.stop(), responder?.stop()]);
    // After the last answer, and while the engine still takes reports.
    await criteria.stop();
    await routing.stop();
    await keyPruner.stop();
    // Before the engine: what failed for good goes into its inbox.
    await notifications?.stop();
    await engine.stop();
    observers.log.info('stopped');
  }

  /** Waits, or less when it is to stop. */
  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clock.clearTimer(timer);
        stopping.signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = clock.setTimer(end, ms);
      stopping.signal.addEventListener('abort', end);
      if (stopping.signal.aborted) end();
    });
  }

  async function within(ms: number, work: Promise<unknown>): Promise<void> {
    let timer: unknown;
    const limit = new Promise<void>((resolve) => {
      timer = clock.setTimer(resolve, ms);
    });
    await Promise.race([work, limit]);
    clock.clearTimer(timer);
  }
}

/** Of `localhost` Fastify would make two servers, and only the first would have the limits of connections. */
async function addressOf({ host }: Settings): Promise<string> {
  if (host !== 'localhost') return host;
  const { address } = await lookup(host);
  return address;
}

/** For nobody but its owner: payloads may be anything. */
async function makeFolder({ databaseUrl, dataDir }: Settings): Promise<void> {
  if (databaseUrl !== undefined) return;
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const message = `The data folder ${dataDir} cannot be made (${code ?? 'unknown error'}). Name another one with REDRIVE_DATA_DIR.`;
    throw new ServiceError('DATA_DIR_UNUSABLE', message, { cause: error });
  }
}

async function warnOfLeftBehind(settings: Settings, log: Wired['observers']['log']): Promise<void> {
  const file = databaseFile(settings);
  if (settings.databaseUrl === undefined || !existsSync(file)) return;
  try {
    const { tasks, items } = await heldBy(file);
    if (tasks + items === 0) return;
    log.warn(
      { pending: tasks, open: items, file },
      'the data folder still holds what nobody delivers while DATABASE_URL is set: stop, and take it along with `redrive move`',
    );
  } catch (error) {
    log.warn({ err: error, file }, 'the data folder has a store that could not be looked at');
  }
}

/** A restart alone would forget what was accepted before the file was lost. */
async function warnOfRescued(settings: Settings, log: Wired['observers']['log']): Promise<void> {
  for (const file of rescuedFiles(databaseFile(settings))) {
    try {
      const { tasks, items } = await heldBy(file);
      log.warn(
        { pending: tasks, open: items, file },
        'a copy of a lost database file is in the data folder, and nobody delivers what it holds: stop, rename it to redrive.db, and start again; or delete it',
      );
    } catch (error) {
      log.warn({ err: error, file }, 'a copy of a lost database file could not be read');
    }
  }
}

/** Somebody who has forgotten DATABASE_URL would find everything gone. */
function warnOfMoved(settings: Settings, log: Wired['observers']['log']): void {
  if (settings.databaseUrl !== undefined) return;
  const last = movedFiles(databaseFile(settings)).at(-1);
  if (last === undefined) return;
  log.warn(
    { file: last },
    'what was in this data folder was moved to PostgreSQL, and DATABASE_URL is not set: this begins with nothing',
  );
}

function isHopeless(error: unknown): boolean {
  if (error instanceof ServiceError) return hopeless.has(error.code);
  return isEngineError(error) && hopeless.has(error.code);
}

function moveUnderWay(settings: Settings): ServiceError {
  return new ServiceError(
    'MOVE_BEGUN',
    `${databaseFile(settings)} is on its way into PostgreSQL: a part of it may be there already, and would be delivered twice. Finish it with \`redrive move\`, and set DATABASE_URL.`,
  );
}
