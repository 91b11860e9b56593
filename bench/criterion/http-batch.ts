import type { Case } from '../result.ts';
import { raceOverHttp } from './crew.ts';
import { batchBody } from './entities.ts';

const SIZE = 1000;
const LEAST_PER_SECOND = 150_000;

export const httpBatch: Case = {
  name: 'http-batch',
  about: `entities in requests of ${SIZE}, over 4 connections`,
  run: (effort) =>
    raceOverHttp(effort, {
      body: batchBody(SIZE),
      connections: 4,
      size: SIZE,
      judge: ({ redrive }) => [
        {
          target: `at least ${LEAST_PER_SECOND.toLocaleString('en')} evaluations/s`,
          measured: `${Math.round(redrive).toLocaleString('en')}/s`,
          met: redrive >= LEAST_PER_SECOND,
        },
      ],
    }),
};
