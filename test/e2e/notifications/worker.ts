/** Delivers due retries to the receiver of the test, until it is killed. */
import { type Job, serviceOn } from './parts.ts';

const job = JSON.parse(process.argv[2]!) as Job;
const { service } = serviceOn(job, async ({ notificationId, deviceId, attempt, signal }) => {
  const response = await fetch(job.receiver, {
    method: 'POST',
    signal,
    body: JSON.stringify({ worker: job.name, id: notificationId, deviceId, attempt }),
  });
  if (response.ok) return { outcome: 'delivered' };
  return { outcome: 'failed', errorCode: 'E' };
});
await service.start();
process.stdout.write('ready\n');
