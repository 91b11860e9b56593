/** Reports of attempts: recorded once, assessed, written, scheduled. In batches, a few round trips for all of them. */
import { Coalescer } from '@redrive/engine/internal';
import { decisionEntry, policyEntry } from 'redrive';
import { assess, type AssessFacts, type Assessment, type DeviceFacts } from '../model/assess.ts';
import { failed, succeeded } from '../model/moves.ts';
import type { NotificationRecord } from '../model/notification.ts';
import { deliveryOf } from '../model/record.ts';
import { laneOfPriority } from '../model/retry-config.ts';
import type { InactiveDevice } from '../ports/repository.ts';
import type { Devices } from './devices.ts';
import type { Parts } from './parts.ts';
import type { Publisher } from './publisher.ts';
import {
  answerOf,
  attemptOf,
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
  devices: Devices;
}

const MAX_BATCH = 200;
const MAX_BYTES = 4 * 1024 * 1024;
/** An estimate: what platforms answer is small. */
const REPORT_BYTES = 1024;

export class Reports {
  readonly #parts: ReporterParts;
  readonly #coalescer: Coalescer<Report, ReportAnswer>;
  readonly #policies = new Set<string>();

  constructor(parts: ReporterParts) {
    this.#parts = parts;
    this.#coalescer = new Coalescer((reports) => this.#work(reports), {
      maxItems: MAX_BATCH,
      maxBytes: MAX_BYTES,
      bytesOf: () => REPORT_BYTES,
      maxUnderway: 4,
      defer: parts.host.defer,
    });
  }

  /** One report. Those that come together share their round trips. */
  add(report: Report): Promise<ReportAnswer> {
    return this.#coalescer.add(report);
  }

  /** Rejects where the repository is in trouble: repeating the call is safe. */
  async #work(reports: readonly Report[]): Promise<ReportAnswer[]> {
    const { writer, host } = this.#parts;
    const nowMs = host.clock.now();
    const read = await writer.read(reports.map(({ report }) => report.notificationId));
    const answers: ReportAnswer[] = [];
    const good: { report: Report; index: number }[] = [];
    for (const [index, report] of reports.entries()) {
      const error = faultOf(report, read, nowMs);
      if (error) answers[index] = { type: 'rejected', error };
      else good.push({ report, index });
    }
    if (good.length === 0) return answers;
    const applied = await this.#account(
      good.map(({ report }) => report),
      read,
      nowMs,
    );
    for (const [i, { index }] of good.entries()) answers[index] = applied[i]!;
    return answers;
  }

  async #account(
    reports: readonly Report[],
    read: ReadRecords,
    nowMs: number,
  ): Promise<ReportAnswer[]> {
    const { writer } = this.#parts;
    // Who takes over a lost lease looks for the outcome of the attempt: it is recorded before anything else.
    const leased = reports.filter(({ lease }) => lease !== undefined);
    const [facts] = await Promise.all([
      this.#factsOf(reports, read, nowMs),
      this.#record(leased, nowMs),
    ]);
    await this.#markDevices(reports, read, facts);
    const changes = reports.map((report): RecordChange<Outcome | 'lease_lost'> => ({
      id: report.report.notificationId,
      apply: (record) => this.#change(record, report, facts.get(report.report.deviceId)!, nowMs),
    }));
    const applied = await writer.apply(changes, read);
    // Nobody looks for those of others: they are recorded after the write, which wakes somebody if this process dies here.
    const others = reports.filter(
      ({ lease }, i) => lease === undefined && !('error' in applied[i]!),
    );
    await this.#record(others, nowMs);
    await this.#follow(reports, applied);
    return reports.map((report, i) => answerOf(report, applied[i]!, nowMs));
  }

  async #record(reports: readonly Report[], nowMs: number): Promise<void> {
    if (reports.length === 0) return;
    const { repository, tell } = this.#parts;
    const attempts = reports.map((report) => attemptOf(report, nowMs));
    const areNew = await repository.addAttempts(attempts);
    for (const [i, { status }] of attempts.entries())
      if (areNew[i]) tell({ type: 'attempted', status });
  }

  #change(
    record: NotificationRecord | undefined,
    { type, report, lease }: Report,
    facts: AssessFacts,
    nowMs: number,
  ) {
    // It was there a moment ago, and is pruned only when it is long over.
    if (!record) return { result: 'lease_lost' as const };
    const { rules } = this.#parts;
    if (type === 'success') return succeeded(record, report, nowMs, rules, lease);
    return failed(record, report, facts, rules, lease);
  }

  /** Asks for devices only where a retry depends on them. */
  async #factsOf(
    reports: readonly Report[],
    { found }: ReadRecords,
    nowMs: number,
  ): Promise<Map<string, AssessFacts>> {
    const { policies, seed, repository, devices } = this.#parts;
    const base: AssessFacts = { nowMs, policies, seed: seed() };
    const failures = reports.flatMap((each) => (each.type === 'failure' ? [each.report] : []));
    const asked = failures.filter((report) => {
      const first = assess(found.get(report.notificationId)!, report, base);
      return (
        first.decision === 'scheduled' ||
        (first.decision === 'failed' && first.reason === 'DEAD_TOKEN')
      );
    });
    const ids = [...new Set(asked.map(({ deviceId }) => deviceId))];
    const [known, since] = await Promise.all([
      Promise.all(ids.map((id) => devices.look(id))),
      ids.length > 0 ? repository.inactiveSince(ids) : [],
    ]);
    const facts = new Map<string, AssessFacts>();
    for (const { report } of reports) facts.set(report.deviceId, base);
    for (const [i, id] of ids.entries()) facts.set(id, factsWith(base, known[i], since[i]));
    return facts;
  }

  /**
   * A dead token is remembered, and a device that got something is alive. Before the write: a report that is repeated finds
   * its attempt written, and would not come here any more.
   */
  async #markDevices(
    reports: readonly Report[],
    { found }: ReadRecords,
    facts: ReadonlyMap<string, AssessFacts>,
  ): Promise<void> {
    const { repository } = this.#parts;
    const dead: InactiveDevice[] = [];
    const alive: string[] = [];
    for (const { type, report } of reports) {
      const { deviceId, notificationId } = report;
      if (type === 'success') alive.push(deviceId);
      else
        dead.push(
          ...deadToken(assess(found.get(notificationId)!, report, facts.get(deviceId)!), deviceId),
        );
    }
    if (dead.length > 0) await repository.deactivate(dead);
    if (alive.length === 0) return;
    const since = await repository.inactiveSince(alive);
    const back = alive.filter((_, i) => since[i] !== undefined);
    if (back.length > 0) await repository.activate(back);
  }

  /** What a write leaves to be done: wake-ups, publications, and telling. A duplicate finishes what the first left undone. */
  async #follow(
    reports: readonly Report[],
    applied: readonly Applied<Outcome | 'lease_lost'>[],
  ): Promise<void> {
    const { wakeUps, publisher } = this.#parts;
    const wanted: WakeUp[] = [];
    const records = new Map<string, NotificationRecord>();
    for (const [i, { report }] of reports.entries()) {
      const answer = applied[i]!;
      if ('error' in answer || !answer.record) continue;
      const { record, result } = answer;
      records.set(record.id, record);
      this.#tell(record, report.deviceId, result);
      const delivery = deliveryOf(record, report.deviceId);
      if (delivery?.state !== 'AwaitingRetry') continue;
      const wakeUp: WakeUp = {
        notificationId: record.id,
        deviceId: report.deviceId,
        attempt: delivery.attempt,
        lane: laneOfPriority[record.notification.priority],
        dueAtMs: delivery.dueAtMs!,
      };
      if (!wakeUps.has(wakeUp)) wanted.push(wakeUp);
    }
    publisher.publishSoon(records.values());
    await wakeUps.schedule(wanted);
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

function deadToken(assessment: Assessment, deviceId: string): InactiveDevice[] {
  if (assessment.decision !== 'failed' || assessment.deadSinceMs === undefined) return [];
  const { deadSinceMs: sinceMs, failure } = assessment;
  return [{ deviceId, sinceMs, reason: failure.code ?? 'DEAD_TOKEN' }];
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
