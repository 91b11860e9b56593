/** Delivers due retries to the receiver of the test, until it is killed. */
import { type Job, serviceOn } from './parts.ts';

const job = JSON.parse(process.argv[2]!) as Job;
const { service } = serviceOn(job, async ({ notificationId, deviceId, attempt, signal }) => {
  const body = { notification_id: notificationId, device_id: deviceId, attempt_number: attempt };
  const response = await fetch(`${job.receiver}${job.name}`, {
    method: 'POST',
    signal,
    body: JSON.stringify(body),
  });
  if (response.ok) return { outcome: 'delivered' };
  return { outcome: 'failed', errorCode: 'E' };
});
await service.start();
process.stdout.write('ready\n');
