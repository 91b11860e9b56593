import type { Suite } from '../result.ts';
import { burst } from './burst.ts';
import { drift } from './drift.ts';
import { httpBatch, httpSingle } from './http.ts';
import { lanes } from './lanes.ts';
import { memory } from './memory.ts';
import { pipeline } from './pipelines.ts';
import { start } from './start.ts';

export const suite: Suite = {
  name: 'service',
  about: 'the service as a process, with real RabbitMQ and PostgreSQL, against the bare work',
  cases: [pipeline, burst, drift, httpSingle, httpBatch, start, memory, lanes],
};
