import { share } from '../engine/verdicts.ts';
import type { Case } from '../result.ts';
import { raceOverHttp } from './crew.ts';
import { singleBody } from './entities.ts';

const LEAST = 0.55;

export const httpSingle: Case = {
  name: 'http-single',
  about: 'requests with one entity each, over 64 connections',
  run: (effort) =>
    raceOverHttp(effort, {
      body: singleBody(),
      connections: 64,
      size: 1,
      judge: ({ redrive, bare }) => [share(LEAST, redrive, bare, 'a bare fastify echo')],
    }),
};
