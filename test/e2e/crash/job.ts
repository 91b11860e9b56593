/** What a child process is told to do, and what it says while it does it. */
import type { EngineOptions, Store } from '@redrive/engine';

export interface Job {
  /** The child's name in the accounts: a replacement has a new one. */
  name: string;
  /** The file of its journal. */
  journal: string;
  place: Place;
  engine?: Pick<
    EngineOptions,
    'lease' | 'heartbeat' | 'poll' | 'grace' | 'maxLostLeases' | 'retention' | 'onUnavailable'
  >;
  /** Absent: it has no handler. */
  work?: Work;
  /** Absent: it submits nothing. */
  submit?: Submit;
  /** Where to copy the file to when it has stopped, from a disk that ends with the process. */
  copyTo?: string;
}

export type Place =
  | { kind: 'sqlite'; file: string; maxFileBytes?: number }
  | { kind: 'postgres'; url: string };

export interface Work {
  concurrency: number;
  /** How long an execution takes. */
  paceMs: number;
}

export interface Submit {
  /** Numbers that were asked for before and never answered: once more. */
  again?: number[];
  from: number;
  /** Without it: on and on, until told that it is enough. */
  count?: number;
  /** Submits under way at once, and the rest after each. */
  atOnce: number;
  paceMs: number;
  /** One of these for each, by its number in turn. */
  plans: Plan[];
  /** So many characters more in each payload. */
  padding?: number;
}

/** What happens to a task when it is executed. */
export type Plan =
  /** Works at once. */
  | 'works'
  /** Fails once, then works. */
  | 'stumbles'
  /** Fails until its attempts are used up. */
  | 'fails'
  /** Is given up by its handler. */
  | 'givesUp'
  /** Kills the process that executes it. */
  | 'kills'
  /** Runs until the gate is opened, or until it is told to end. */
  | 'waits'
  /** Runs until the gate is opened, whatever it is told. */
  | 'hangs';

export interface Payload {
  number: number;
  plan: Plan;
  padding?: string;
}

/** The name of the handler, and its lane. */
export const handlerName = 'work';
export const lane = `handler:${handlerName}`;
export const maxAttempts = 3;

/** From the test to a child. */
export type Order =
  /** Submit no more. */
  | 'enough'
  /** Let those go that wait. */
  | 'openGate'
  /** Try again what was refused. */
  | 'goOn'
  | 'stop'
  /** Take all that is left of the disk by this file. */
  | { fillDisk: string }
  | { freeDisk: string };

/** From a child to the test, whenever one has changed. */
export interface Counts {
  /** The engine runs. */
  started: boolean;
  /** Executions that began. */
  began: number;
  /** Tasks that were settled as done. */
  done: number;
  /** Submits that were answered. */
  accepted: number;
  /** Submits that failed: they wait for `goOn`. */
  refused: number;
  /** All submits are answered. */
  submitted: boolean;
  /** How often it was told to stop. */
  stopping: number;
}

export const noCounts: Counts = {
  started: false,
  began: 0,
  done: 0,
  accepted: 0,
  refused: 0,
  submitted: false,
  stopping: 0,
};

/** Loads only what is asked for: a child starts the sooner. */
export async function storeAt(place: Place): Promise<Store> {
  if (place.kind === 'postgres') {
    const { postgres } = await import('@redrive/engine/postgres');
    return postgres({ url: place.url });
  }
  const { sqlite } = await import('@redrive/engine/sqlite');
  const { file, maxFileBytes } = place;
  return sqlite(file, maxFileBytes === undefined ? {} : { maxFileBytes });
}
