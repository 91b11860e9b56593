/** What buckets and keys are called. Pure. */
import { EngineError } from '../../../errors.ts';

export function streamOf(bucket: string): string {
  return `KV_${bucket}`;
}

export function subjectOf(bucket: string, key: string): string {
  checkBucketName(bucket);
  // Names become part of a subject: others could address something else.
  if (!/^[-/_=a-zA-Z0-9]+(\.[-/_=a-zA-Z0-9]+)*$/.test(key) || key.length > MAX_KEY) {
    throw new EngineError(
      'NATS_REFUSED',
      `A key of a bucket has 1 to ${MAX_KEY} letters, digits, - / _ = and single dots between them, and not ${JSON.stringify(String(key).slice(0, 80))}.`,
    );
  }
  return `$KV.${bucket}.${key}`;
}

export function checkBucketName(bucket: string): void {
  if (/^[\w-]{1,64}$/.test(bucket)) return;
  throw new EngineError(
    'NATS_REFUSED',
    `A bucket has a name of 1 to 64 letters, digits, dashes and underscores, and not ${JSON.stringify(String(bucket).slice(0, 80))}.`,
  );
}

const MAX_KEY = 200;
