/** What to make of a machine: the room on its disk, and its clock against those of others. Pure. */
import { type Finding, sizeOf } from './finding.ts';

const MiB = 1024 * 1024;
const BROKEN_BYTES = 100 * MiB;
const LOW_BYTES = 1024 * MiB;
const LOW_SHARE = 0.05;

export function diskRoom(folder: string, freeBytes: number, allBytes: number): Finding {
  const share = allBytes > 0 ? freeBytes / allBytes : 1;
  const what = `The disk of ${folder} has ${sizeOf(freeBytes)} left (${Math.round(share * 100)} %).`;
  if (freeBytes < BROKEN_BYTES) {
    return {
      about: 'disk',
      level: 'broken',
      what,
      advice: 'Make room now: without it nothing more can be taken in.',
    };
  }
  if (freeBytes < LOW_BYTES || share < LOW_SHARE) {
    return {
      about: 'disk',
      level: 'warning',
      what,
      advice: 'Make room, or move the data folder (REDRIVE_DATA_DIR).',
    };
  }
  return { about: 'disk', level: 'fine', what };
}

const WARN_SKEW_MS = 2000;
const BROKEN_SKEW_MS = 300_000;

/** How far the clock of somebody else is ahead of ours. */
export function clockSkew(whose: string, aheadMs: number): Finding {
  const seconds = Math.round(Math.abs(aheadMs) / 100) / 10;
  if (Math.abs(aheadMs) < WARN_SKEW_MS) {
    return { about: 'clock', level: 'fine', what: `The clock of ${whose} agrees with ours.` };
  }
  return {
    about: 'clock',
    level: Math.abs(aheadMs) < BROKEN_SKEW_MS ? 'warning' : 'broken',
    what: `The clock of ${whose} is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} ours.`,
    advice:
      'Let both keep time by NTP: due times, expiry and Retry-After dates are off by as much.',
  };
}
