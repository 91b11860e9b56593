import { casesOf, type CaseTable, type ConformanceCase } from '@redrive/engine/testing';
import type { NotificationError } from '../../errors.ts';
import type { NotificationRepository } from '../../ports/repository.ts';
import { attemptCases } from './attempt-cases.ts';
import { concurrencyCases } from './concurrency-cases.ts';
import { createCases } from './create-cases.ts';
import { damageCases } from './damage-cases.ts';
import { deviceCases } from './device-cases.ts';
import { lifecycleCases } from './lifecycle-cases.ts';
import { limitCases } from './limit-cases.ts';
import { queryCases } from './query-cases.ts';
import { pruneCases } from './prune-cases.ts';
import { writeCases } from './write-cases.ts';

/** How the suite gets at the repository that it examines. */
export interface RepositorySetup {
  /** An empty repository, open, for one case. What it cannot read goes to `onUnreadable`. */
  open(onUnreadable: (error: NotificationError) => void): Promise<OpenedRepository>;
  /** Whether the database keeps its own promise of one writer at a time. False only for one that is known not to. */
  atomic: boolean;
  /**
   * Whether it takes lists in lists, and hundreds of records within the time of a test. False only for a stand-in of a
   * database that is known not to.
   */
  complete: boolean;
  /** Whether records outlive `close`, and another repository has the same ones. */
  durable: boolean;
  /** Whether a record can be damaged from outside. */
  damaging: boolean;
}

export interface OpenedRepository {
  repository: NotificationRepository;
  /** Another one on the same records, as another process would have it: not open yet. */
  another?: () => NotificationRepository;
  /** Takes a field out of the stored record, or makes it a text, as something else that writes there might. */
  damage?: (id: string, how: 'without createdAtMs' | 'with deliveries as a text') => Promise<void>;
  close(): Promise<void>;
}

export interface Stage {
  repository: NotificationRepository;
  another: () => NotificationRepository;
  damage: Required<OpenedRepository>['damage'];
  /** The ids of what could not be read, in the order in which that was told. */
  told: readonly string[];
}

export type Need = 'atomic' | 'complete' | 'durable' | 'damaging';
export type Cases = CaseTable<Stage, Need>;

/** Every promise of the port `NotificationRepository`, one by one. */
export function repositorySuite(setup: RepositorySetup): ConformanceCase[] {
  const { atomic, complete, durable, damaging } = setup;
  const tables = {
    create: createCases,
    write: writeCases,
    attempts: attemptCases,
    queries: queryCases,
    devices: deviceCases,
    prune: pruneCases,
    limits: limitCases,
    concurrency: concurrencyCases,
    damage: damageCases,
    lifecycle: lifecycleCases,
  };
  return casesOf<Stage, Need>(tables, { atomic, complete, durable, damaging }, async (body) => {
    const told: string[] = [];
    const opened = await setup.open((error) => told.push(...error.ids));
    const { repository, another, damage } = opened;
    try {
      await body({ repository, told, another: another!, damage: damage! });
    } finally {
      await opened.close();
    }
  });
}
