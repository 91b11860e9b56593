/** The flow of notification retries in one process: reports, lanes, deliveries, dead letters, a replay. */
import { memoryDelayQueue } from '@redrive/engine/memory';
import {
  createNotifications,
  type DeadLetter,
  type DeliveryRecord,
  type NotificationEvent,
  type Notifications,
} from '@redrive/notifications';
import { memoryNotifications } from '@redrive/notifications/memory';
import type { Clock } from 'redrive';
import { pause } from '../call/stories.ts';
import { answerTo, cast, notificationOf, policies, REPLAYED, type Role } from './cast.ts';

export interface Row {
  role: Role;
  /** Absent: nothing was reported yet. */
  delivery?: DeliveryRecord;
}

export interface Scene {
  elapsedMs: number;
  nowMs: number;
  rows: readonly Row[];
  letters: readonly DeadLetter[];
}

/** What happens, as it happens. */
export type Happening =
  | { type: 'sent'; id: string; attempt: number }
  | { type: 'event'; event: NotificationEvent }
  | { type: 'dead_letter'; letter: DeadLetter }
  | { type: 'replayed'; id: string };

interface Audience {
  /** Ten times a second. */
  show(scene: Scene): void;
  tell(happening: Happening, elapsedMs: number): void;
}

const TICK_MS = 100;
/** How long a push service takes to answer. */
const ANSWER_MS = 250;
const REPORT_EVERY_MS = 400;
/** How long an operator looks at the dead letter. */
const LOOK_MS = 1200;
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** Plays until all is over, so long, or until it is interrupted. */
export async function play(
  signal: AbortSignal,
  limitMs: number,
  clock: Clock,
  audience: Audience,
): Promise<Scene> {
  const letters: DeadLetter[] = [];
  const startedAt = clock.monotonic();
  const elapsed = () => clock.monotonic() - startedAt;
  const tell = (happening: Happening) => audience.tell(happening, elapsed());
  const queue = () => memoryDelayQueue({ clock, log: quiet });
  const service = createNotifications({
    repository: memoryNotifications(),
    queues: { urgent: queue(), bulk: queue() },
    policies,
    devices: {
      look: async (deviceId) => ({
        active: !cast.some((role) => role.deviceId === deviceId && role.isInactive),
      }),
    },
    async deliver({ notificationId: id, attempt }) {
      tell({ type: 'sent', id, attempt });
      await pause(clock, ANSWER_MS);
      return answerTo(id, attempt);
    },
    event: async (event) => tell({ type: 'event', event }),
    async deadLetter(letter) {
      letters.push(letter);
      tell({ type: 'dead_letter', letter });
    },
    clock,
    // Tests play it on a virtual clock, which moves on as soon as no promise is left to settle.
    defer: queueMicrotask,
    // The same delays each time, so that what the docs show is what you see.
    seed: 4,
    log: quiet,
  });
  await service.start();
  try {
    const nowMs = clock.now();
    await service.createMany(cast.map((role) => notificationOf(role, nowMs)));
    const operator = new Operator(service, tell);
    let reported = 0;
    for (;;) {
      const elapsedMs = elapsed();
      const scene = { elapsedMs, nowMs: clock.now(), rows: await rowsOf(service), letters };
      audience.show(scene);
      if (signal.aborted || elapsedMs >= limitMs || isOver(scene)) return scene;
      for (; reported < cast.length && reported * REPORT_EVERY_MS <= elapsedMs; reported++)
        await reportFirst(service, cast[reported]!, tell);
      await operator.look(scene);
      await pause(clock, TICK_MS);
    }
  } finally {
    await service.stop();
  }
}

/** All have ended, but those that wait for the end of quiet hours, and what was replayed is delivered. */
function isOver({ rows }: Pick<Scene, 'rows'>): boolean {
  return rows.every(({ role, delivery }) => {
    if (!delivery) return false;
    if (role.id === REPLAYED) return delivery.state === 'DeliverySucceeded';
    if (delivery.state === 'AwaitingRetry') return role.isQuiet === true;
    return delivery.state !== 'Retrying';
  });
}

/** The first attempt was made by the program that sends notifications. It reports what came of it. */
async function reportFirst(
  service: Notifications,
  { id, deviceId }: Role,
  tell: (happening: Happening) => void,
): Promise<void> {
  const first = answerTo(id, 1);
  if (first.outcome === 'delivered') return;
  const { outcome: _, ...failed } = first;
  tell({ type: 'sent', id, attempt: 1 });
  await service.reportFailure({ notificationId: id, deviceId, attemptNumber: 1, ...failed });
}

async function rowsOf(service: Notifications): Promise<Row[]> {
  return Promise.all(
    cast.map(async (role) => {
      const delivery = (await service.get(role.id))?.deliveries[role.deviceId];
      return { role, ...(delivery ? { delivery } : {}) };
    }),
  );
}

/** Replays a dead letter, once, after a look at it. */
class Operator {
  readonly #service: Notifications;
  readonly #tell: (happening: Happening) => void;
  #sawAtMs: number | undefined;

  constructor(service: Notifications, tell: (happening: Happening) => void) {
    this.#service = service;
    this.#tell = tell;
  }

  async look({ rows, elapsedMs }: Scene): Promise<void> {
    const row = rows.find(({ role }) => role.id === REPLAYED);
    if (row?.delivery?.state !== 'PermanentFailure') return;
    this.#sawAtMs ??= elapsedMs;
    if (elapsedMs - this.#sawAtMs < LOOK_MS) return;
    this.#tell({ type: 'replayed', id: row.role.id });
    await this.#service.replay(row.role.id, row.role.deviceId);
  }
}
