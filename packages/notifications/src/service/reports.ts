/** Reports of attempts: recorded once, assessed, written, scheduled. In batches, a few round trips for all of them. */
import { Coalescer } from '@redrive/engine/internal';
import { decisionEntry, policyEntry } from 'redrive';
import { assess, type AssessFacts, type Assessment, type DeviceFacts } from '../model/assess.ts';
import { failed, succeeded } from '../model/moves.ts';
import type { DeliveryAttempt, NotificationRecord } from '../model/notification.ts';
import { deliveryOf } from '../model/record.ts';
import { laneOfPriority } from '../model/retry-config.ts';
import type { Devices } from './devices.ts';
import type { Parts } from './parts.ts';
import type { Changed, Publisher } from './publisher.ts';
import {
  answerOf,
  attemptOf,
  deviceFault,
  faultOf,
  type Outcome,
  type Report,
  type ReportAnswer,
} from './report.ts';
import type { Applied, ReadRecords, RecordChange, RecordWriter } from './record-writer.ts';
import type { WakeUp, WakeUps } from './wake-ups.ts';

interface ReporterParts extends Parts {
  writer: RecordWriter;
  wakeUps: WakeUps;
  publisher: Publisher;
  /** Absent: every device counts as unknown, and unknown is not inactive. */
  devices: Devices | undefined;
}

const MAX_BATCH = 200;
const MAX_BYTES = 4 * 1024 * 1024;
/** An estimate: what platforms answer is small. */
const REPORT_BYTES = 1024;

export class Reports {
  readonly #parts: ReporterParts;
  readonly #given: Coalescer<Report, Written>;
  /** Outcomes of our own deliveries: one that waited behind a flood of reports would lose its lease, and be made once more. */
  readonly #own: Coalescer<Report, Written>;
  readonly #policies = new Set<string>();

  constructor(parts: ReporterParts) {
    this.#parts = parts;
    const coalescer = () =>
      new Coalescer<Report, Written>((reports) => this.#work(reports), {
        maxItems: MAX_BATCH,
        maxBytes: MAX_BYTES,
        bytesOf: () => REPORT_BYTES,
        maxUnderway: 4,
        defer: parts.host.defer,
      });
    this.#given = coalescer();
    this.#own = coalescer();
  }

  /** One report. Those that come together share their round trips. `isOwn`: of a delivery that this or a lost worker made. */
  async add(report: Report, isOwn = report.lease !== undefined): Promise<ReportAnswer> {
    const { answer, scheduled } = await (isOwn ? this.#own : this.#given).add(report);
    // Outside of the batch: a queue that does not answer must not hold up reports of the other lane.
    await scheduled;
    return answer;
  }

  /** Rejects where the repository is in trouble: repeating the call is safe. */
  async #work(reports: readonly Report[]): Promise<Written[]> {
    const { writer, host, repository } = this.#parts;
    const nowMs = host.clock.now();
    const [read, since] = await Promise.all([
      writer.read(reports.map(({ report }) => report.notificationId)),
      repository.inactiveSince(reports.map(({ report }) => report.deviceId)),
    ]);
    const answers: Written[] = [];
    const good: Reported[] = [];
    for (const [index, given] of reports.entries()) {
      const attempt = attemptOf(given, nowMs);
      const error = faultOf(attempt, read);
      if (error) answers[index] = { answer: { type: 'rejected', error } };
      else good.push({ index, given, attempt, inactiveSinceMs: since[index] });
    }
    const applied = await this.#account(good, read, nowMs);
    const scheduled = this.#follow(good, applied);
    for (const [i, { index, given }] of good.entries()) {
      const answer = answerOf(given, applied[i]!, nowMs);
      const underway = scheduled.get(index);
      answers[index] = underway ? { answer, scheduled: underway } : { answer };
    }
    return answers;
  }

  async #account(
    reports: readonly Reported[],
    read: ReadRecords,
    nowMs: number,
  ): Promise<Applied<Outcome | 'lease_lost'>[]> {
    const { writer } = this.#parts;
    // Who takes over a lost lease looks for the outcome of the attempt: it is recorded before anything else.
    const leased = reports.filter(({ given }) => given.lease !== undefined);
    const [changes] = await Promise.all([
      this.#changesOf(reports, read, nowMs),
      writer.write(
        [],
        leased.map(({ attempt }) => attempt),
      ),
    ]);
    await this.#markDevices(changes);
    return writer.apply(changes, read);
  }

  /** Asks the device service only where a retry depends on the device. */
  async #changesOf(
    reports: readonly Reported[],
    { found }: ReadRecords,
    nowMs: number,
  ): Promise<ReportChange[]> {
    const { policies, seed, devices } = this.#parts;
    const base: AssessFacts = { nowMs, policies, seed: seed() };
    const asked = reports.filter(({ given: { type, report } }) => {
      if (!devices || type === 'success') return false;
      const first = assess(found.get(report.notificationId)!, report, base);
      return first.decision === 'scheduled' || isDeadToken(first);
    });
    const ids = new Set(asked.map(({ attempt }) => attempt.deviceId));
    const known = new Map(
      await Promise.all([...ids].map(async (id) => [id, await devices!.look(id)] as const)),
    );
    return reports.map((reported) => {
      const { deviceId, notificationId } = reported.attempt;
      const facts = factsWith(base, known.get(deviceId), reported.inactiveSinceMs);
      return this.#changeOf(reported, found.get(notificationId)!, facts);
    });
  }

  #changeOf(
    { given, attempt, inactiveSinceMs }: Reported,
    read: NotificationRecord,
    facts: AssessFacts,
  ): ReportChange {
    const { rules } = this.#parts;
    const { type, report, lease } = given;
    const first = type === 'failure' ? assess(read, report, facts) : undefined;
    return {
      id: report.notificationId,
      // Nobody looks for those of others: where they are not recorded at once with the record, its write wakes somebody.
      ...(lease === undefined ? { attempt } : {}),
      deviceId: report.deviceId,
      first,
      isBack: type === 'success' && inactiveSinceMs !== undefined,
      apply: (record) => {
        // It was there a moment ago, and is pruned only when it is long over.
        if (!record) return { result: 'lease_lost' };
        const error = deviceFault(record, report.deviceId);
        if (error) return { error };
        if (type === 'success') return succeeded(record, report, facts.nowMs, rules, lease);
        const assessment = record === read ? first! : assess(record, report, facts);
        return failed(record, report, assessment, facts.nowMs, rules, lease);
      },
    };
  }

  /**
   * A dead token is remembered, and a device that got something is alive. Before the write: a report that is repeated finds
   * its attempt written, and would not come here any more.
   */
  async #markDevices(changes: readonly ReportChange[]): Promise<void> {
    const { repository } = this.#parts;
    const dead = changes.flatMap(({ first, deviceId }) =>
      first && isDeadToken(first) ? [inactiveOf(first, deviceId)] : [],
    );
    const back = changes.filter(({ isBack }) => isBack).map(({ deviceId }) => deviceId);
    if (dead.length > 0) await repository.deactivate(dead);
    if (back.length > 0) await repository.activate(back);
  }

  /**
   * What a write leaves to be done: wake-ups, publications, and telling. A duplicate finishes what the first left undone.
   * Answers which reports, by their index, wait for a queue, each for that of its lane.
   */
  #follow(
    reports: readonly Reported[],
    applied: readonly Applied<Outcome | 'lease_lost'>[],
  ): Map<number, Promise<void>> {
    const { wakeUps, publisher } = this.#parts;
    const wanted: { index: number; wakeUp: WakeUp }[] = [];
    const changes: Changed[] = [];
    for (const [i, { index, attempt }] of reports.entries()) {
      const answer = applied[i]!;
      if ('error' in answer || !answer.record) continue;
      const { deviceId } = attempt;
      const { record, result } = answer;
      changes.push({ record, deviceIds: [deviceId] });
      this.#tell(record, deviceId, result);
      const delivery = deliveryOf(record, deviceId);
      if (delivery?.state !== 'AwaitingRetry') continue;
      const wakeUp: WakeUp = {
        notificationId: record.id,
        deviceId,
        attempt: delivery.attempt,
        lane: laneOfPriority[record.notification.priority],
        dueAtMs: delivery.dueAtMs!,
      };
      if (!wakeUps.has(wakeUp)) wanted.push({ index, wakeUp });
    }
    publisher.publishSoon(changes);
    const scheduled = new Map<number, Promise<void>>();
    for (const ofLane of Map.groupBy(wanted, ({ wakeUp }) => wakeUp.lane).values()) {
      const underway = wakeUps.schedule(ofLane.map(({ wakeUp }) => wakeUp));
      for (const { index } of ofLane) scheduled.set(index, underway);
    }
    return scheduled;
  }

  #tell(
    { id, notification: { priority } }: NotificationRecord,
    deviceId: string,
    outcome: Outcome | 'lease_lost',
  ): void {
    const { tell, host } = this.#parts;
    if (outcome === 'duplicate') tell({ type: 'duplicate' });
    if (typeof outcome === 'string') return;
    switch (outcome.decision) {
      case 'duplicate':
        return tell({ type: 'duplicate' });
      case 'scheduled':
        tell({ type: 'scheduled', priority, lane: outcome.lane, delayMs: outcome.delayMs });
        break;
      case 'skipped':
        tell({ type: 'skipped', priority, reason: outcome.reason });
        break;
      case 'expired':
        tell({ type: 'expired', priority });
        break;
      case 'failed': {
        const { reason, platform = 'unknown', failure } = outcome;
        tell({ type: 'failed', priority, reason });
        if (reason !== 'CONFIGURATION') break;
        tell({ type: 'misconfigured', platform });
        host.log.error(
          { platform, code: failure.code },
          'a push service refuses the credentials of the provider',
        );
      }
    }
    this.#audit(id, deviceId, outcome);
  }

  #audit(
    id: string,
    deviceId: string,
    outcome: Exclude<Assessment, { decision: 'duplicate' }>,
  ): void {
    const { audit } = this.#parts;
    const { decided } = outcome;
    if (!audit || !decided) return;
    if (!this.#policies.has(decided.policy.fingerprint)) {
      this.#policies.add(decided.policy.fingerprint);
      audit(policyEntry(decided.policy));
    }
    const subject = { category: 'NOTIFICATION', operation: deviceId, correlationId: id };
    const waitMs = outcome.decision === 'scheduled' ? outcome.delayMs : undefined;
    audit(decisionEntry(subject, decided, { notification: outcome.decision }, waitMs));
  }
}

/** The record is written. `scheduled`: when its wake-up is in the queue, or is left to the sweeper. Never rejects. */
interface Written {
  answer: ReportAnswer;
  scheduled?: Promise<void>;
}

interface Reported {
  index: number;
  given: Report;
  attempt: DeliveryAttempt;
  inactiveSinceMs: number | undefined;
}

interface ReportChange extends RecordChange<Outcome | 'lease_lost'> {
  deviceId: string;
  /** Of a failure, by the record as it was read. */
  first: Assessment | undefined;
  /** The device was taken for inactive, and got something. */
  isBack: boolean;
}

type DeadToken = Extract<Assessment, { decision: 'failed' }> & { deadSinceMs: number };

function isDeadToken(assessment: Assessment): assessment is DeadToken {
  return assessment.decision === 'failed' && assessment.deadSinceMs !== undefined;
}

function inactiveOf({ deadSinceMs: sinceMs, failure }: DeadToken, deviceId: string) {
  return { deviceId, sinceMs, reason: failure.code ?? 'DEAD_TOKEN' };
}

function factsWith(
  base: AssessFacts,
  device: DeviceFacts | undefined,
  inactiveSinceMs: number | undefined,
): AssessFacts {
  return {
    ...base,
    ...(device ? { device } : {}),
    ...(inactiveSinceMs === undefined ? {} : { inactiveSinceMs }),
  };
}
