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
