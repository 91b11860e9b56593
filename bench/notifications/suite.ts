import type { Suite } from '../result.ts';
import { floodCase, floodServersCase } from './flood.ts';
import { reportHttpCase, reportHttpPostgresCase } from './report-http.ts';
import { reportCase, reportPostgresCase } from './report.ts';

export const suite: Suite = {
  name: 'notifications',
  about: 'retries of notifications: reported, decided, recorded, scheduled',
  cases: [
    reportCase,
    reportPostgresCase,
    reportHttpCase,
    reportHttpPostgresCase,
    floodCase,
    floodServersCase,
  ],
};
