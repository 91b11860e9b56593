/** The whole service with NOTIFICATIONS=on, as `redrive serve` runs it, but with times that are short enough to wait for. */
import { createService, readSettings } from '@redrive/server';
import { policy } from './parts.ts';

interface Job {
  env: Record<string, string>;
  cwd: string;
}

const { env, cwd } = JSON.parse(process.argv[2]!) as Job;
const common = { HTTP_PORT: '0', REDRIVE_LOG_LEVEL: 'fatal', NOTIFICATIONS: 'on' };
const reading = await readSettings({ env: { ...common, ...env }, cwd });
if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
const priorities = ['critical', 'high', 'medium', 'low'];
const policies = Object.fromEntries(priorities.map((one) => [`notification.${one}`, policy]));
const service = createService(
  { ...reading.settings, policies },
  {
    notificationTimes: {
      deliverTimeoutMs: 1000,
      leaseMs: 3000,
      queueLeaseMs: 1000,
      sessionTimeoutMs: 1500,
      graceMs: 1000,
      sweepMs: 300,
      maxLostLeases: 20,
    },
  },
);
const { url } = await service.start();
await service.ready;
process.stdout.write(`${url}\n`);
