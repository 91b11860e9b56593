/** Where the process is killed. */
export type Point =
  | 'before claim'
  | 'after claim'
  | 'before effect'
  | 'after effect'
  | 'before record'
  | 'after record'
  | 'before commit'
  | 'after all';

export interface Job {
  store:
    | { kind: 'sqlite'; file: string }
    | { kind: 'redis'; url: string }
    | { kind: 'nats'; url: string }
    | { kind: 'postgres'; url: string }
    | { kind: 'transaction'; url: string };
  key: string;
  /** The file whose length is the number of effects. */
  effects: string;
  leaseMs: number;
  afterCrash: 'run' | 'conflict';
  dieAt?: Point;
}

/** Where the process of an engine is killed, between the claim of a task and its settle. */
export const handlerPoints = [
  'after the task is claimed',
  'before claim',
  'after claim',
  'before effect',
  'after effect',
  'before record',
  'after record',
  'before commit',
  'during commit',
  'after commit',
  'before settle',
  'after settle',
] as const;
export type HandlerPoint = (typeof handlerPoints)[number];

/** One task of an idempotent handler, and where its process dies. */
export interface HandlerJob {
  store: { kind: 'sqlite'; file: string } | { kind: 'postgres'; url: string };
  /** Of the task, which is submitted by the first process. */
  id: string;
  /** The file whose length is the number of effects, where the effect is outside of the database. */
  effects: string;
  /** The effect is in the database, by `tx`. */
  isInside: boolean;
  leaseMs: number;
  dieAt?: HandlerPoint;
}
