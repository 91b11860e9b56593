import type { Suite } from '../result.ts';
import { grpc } from './grpc.ts';
import { grpcMemory } from './grpc-memory.ts';
import { httpBatch } from './http-batch.ts';
import { httpSingle } from './http-single.ts';
import { latency } from './latency.ts';
import { memory } from './memory.ts';

/** One file per case. */
export const suite: Suite = {
  name: 'criterion',
  about: 'evaluations of isRetryDelayElapsed by the service as a process, against a bare echo',
  cases: [httpSingle, httpBatch, grpc, latency, memory, grpcMemory],
};
