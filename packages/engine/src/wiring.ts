import { Executor } from './dispatch/executor.ts';
import { ItemActions } from './inbox/item-actions.ts';
import { Directory } from './dispatch/directory.ts';
import { Dispatcher } from './dispatch/dispatcher.ts';
import type { EngineOptions, EngineSettings } from './engine-options.ts';
import { EntryHook } from './inbox/entry-hook.ts';
import type { EngineEvent } from './events.ts';
import { hostOf } from './host.ts';
import { InboxKeeper } from './inbox/inbox-keeper.ts';
import { Intake } from './intake/intake.ts';
import { JobRunner } from './inbox/job-runner.ts';
import type { Job } from './model/jobs.ts';
import { LaneReporter } from './lanes/lane-report.ts';
import { Lanes } from './lanes/lanes.ts';
import { Observer } from './audit/observer.ts';
import { Outbox } from './outbox.ts';
import { Policies } from './dispatch/policies.ts';
import type { Store } from './ports/store.ts';
import { Pruner } from './pruner.ts';
import { Reporter } from './intake/report.ts';
import { Settler } from './dispatch/settler.ts';
import { Submitter } from './intake/submitter.ts';
import { Trail } from './audit/trail.ts';
import { UnservedLanes } from './dispatch/unserved.ts';

const MAX_HELD = 5000;
const MAX_HELD_BYTES = 64 * 1024 * 1024;

/** What the parts learn from the store once it is open. */
export interface Shared {
  /** The jitter's, one per deployment. */
  seed: number;
}

/** Builds the parts of an engine, each with what it needs of the others. `until` ends what is tried for ever. */
export function wire(
  options: EngineOptions,
  settings: EngineSettings,
  until: AbortSignal,
  opened: () => Promise<Store>,
) {
  const { leaseMs, heartbeatMs, pollMs, maxLostLeases, retention, maxPayloadBytes } = settings;
  const { store, review } = options;
  const shared: Shared = { seed: 0 };
  const host = hostOf(options);
  const instance = options.instance ?? `i-${Math.floor(host.random() * 2 ** 48).toString(36)}`;

  const directory = new Directory(options, settings, host, (task) => observer.keyAudit(task));
  const deliveryOf = (kind: string) => directory.deliveryOf(kind);
  const policyOf = (lane: string) => directory.policyOf(lane);
  const settingsOf = (lane: string) => directory.settingsOf(lane);

  const reachOf = (lane: string) => directory.reachOf(lane);
  const lanes = new Lanes(store, host, instance, settingsOf, reachOf, () => dispatcher.wake());
  const nowMs = () => lanes.nowMs;
  const laneReporter = new LaneReporter({ lanes, directory, store, clock: host.clock });
  const policies = new Policies(store, host.log, options.policies ?? {}, directory);
  const settler = new Settler(store, host, until);

  const trail = new Trail(options.audit, host, instance, store.audit);
  const { onEntry, debounceMs } = settings.inbox;
  const hook = onEntry && new EntryHook({ onEntry, debounceMs }, host);
  const observer = new Observer(options.on, trail, host.log, options.policies, (item, about) =>
    hook?.entered(item, about, nowMs()),
  );
  const outbox = new Outbox(store, host, options.brokers ?? [], pollMs);

  const executor = new Executor({
    schedule: store,
    host,
    lanes,
    settler,
    deliveryOf,
    events: {
      started: (task) => observer.started(task, lanes.nowMs),
      settled: (task, judgement, result) => {
        if (judgement.settlement.to === 'failed') outbox.wake();
        // A bulk job waits for room, or for its step.
        const isOver = judgement.settlement.to !== 'pending' && result === 'settled';
        if (task.job !== undefined) runner.settled(task.job, isOver);
        observer.settled(task, judgement, result);
      },
      refused: (task, reason, by) => {
        outbox.wake();
        if (task.job !== undefined) runner.settled(task.job, true);
        observer.refused(task, reason, by);
      },
    },
    settings: { leaseMs, heartbeatMs },
    circumstances: () => ({ seed: shared.seed, ...(review ? { review } : {}) }),
  });
  const limits = { maxLostLeases, maxHeld: MAX_HELD, maxHeldBytes: MAX_HELD_BYTES };
  const dispatcher = new Dispatcher({
    schedule: store,
    host,
    lanes,
    executor,
    settler,
    policies,
    settings: { leaseMs, pollMs, ...limits },
    serves: (lane) => directory.serves(lane),
  });

  const intake = new Intake(
    store,
    host,
    () => shared.seed,
    nowMs,
    (...about) => observer.came(...about),
  );
  const { handlers } = directory;
  const canOrder = store.capabilities.ordering;
  const checks = { host, policies, handlers, deliveryOf, policyOf, maxPayloadBytes, nowMs };
  const unserved = new UnservedLanes({
    log: host.log,
    handlers,
    dispatches: options.dispatch !== false,
  });
  const warningFor = (lane: string) =>
    directory.serves(lane) ? undefined : unserved.warningFor(lane);
  const submitter = new Submitter({ ...checks, canOrder, warningFor });
  const reporter = new Reporter({
    policies,
    policyOf,
    random: host.random,
    nowMs,
    maxPayloadBytes,
    canOrder,
    checkAddress: (...about) => submitter.checkAddress(...about),
    ...(review ? { review } : {}),
  });
  const ended = (job: Job) => observer.jobEnded(job);
  const runner = new JobRunner({ store, host, instance, nowMs, pollMs, ended });
  const inbox = new ItemActions({
    store: opened,
    submitter,
    maxPayloadBytes,
    isAudited: trail.isOn,
    eraseEvents: (messageId) => {
      hook?.erase(messageId);
      return trail.erase(messageId);
    },
    surroundings: {
      // One who only answers requests has no broker, and still its reviews go to one.
      hasBroker: (options.brokers ?? []).length > 0 || review !== undefined,
      hasHook: onEntry !== undefined,
    },
    nowMs,
    wakeRunner: () => runner.wake(),
    sentTo: (lane) => {
      if (directory.serves(lane)) return;
      host.log.warn({ lane }, 'redirected to where nobody delivers in this process: is it a slip?');
    },
    acted: (action, facts) => observer.acted(action, facts),
    ended,
  });
  const pruneAudit = (limit: number) => trail.prune(limit);
  const pruneKeys = async (limit: number) => (await directory.once?.prune(limit)) ?? 0;
  const pruneLanes = (limit: number) => lanes.documents.prune(limit);
  const tell = (event: EngineEvent) => observer.emit(event);
  const keeper = new InboxKeeper({ store, host, nowMs, settings: settings.inbox, tell, ended });
  const keepInbox = (signal: AbortSignal) => keeper.round(signal);
  const prunes = { pruneAudit, pruneKeys, pruneLanes };
  const pruning = { retention, leaseMs, everyMs: pollMs, ...prunes, keepInbox };
  const pruner = new Pruner(store, host, lanes, executor, pruning);

  const delivering = {
    shared,
    host,
    directory,
    lanes,
    laneReporter,
    settler,
    executor,
    dispatcher,
  };
  const coming = { intake, submitter, reporter, unserved };
  return { ...delivering, ...coming, pruner, outbox, trail, observer, runner, inbox, hook };
}
