import { casesOf, type ConformanceCase } from '../suite.ts';
import { consumeCases } from './delay-queue-consume.ts';
import { leaseCases } from './delay-queue-lease.ts';
import { lifecycleCases } from './delay-queue-lifecycle.ts';
import { cancelCases, deduplicateCases, depthCases } from './delay-queue-names.ts';
import { scheduleCases } from './delay-queue-schedule.ts';
import { type DelayNeed, type DelayQueueSetup, onDelayStage } from './delay-queue-stage.ts';

/** Longer than a case waits: what comes within a case did not come because a lease was over. */
const LONG_LEASE_MS = 60_000;
/** Several times as long as a busy machine keeps a process waiting. */
const SHORT_LEASE_MS = 1000;

/** Every promise of the port `DelayQueue`, one by one. */
export function delayQueueSuite(setup: DelayQueueSetup): ConformanceCase[] {
  const { hooks = [] } = setup;
  const needs: Record<DelayNeed, boolean> = {
    ...setup.capabilities,
    held: hooks.includes('held'),
    kill: hooks.includes('kill'),
    expireLeases: hooks.includes('expireLeases'),
    skewed: hooks.includes('skewed'),
  };
  const plain = {
    schedule: scheduleCases,
    consume: consumeCases,
    deduplicate: deduplicateCases,
    cancel: cancelCases,
    depth: depthCases,
    lifecycle: lifecycleCases,
  };
  return [
    ...casesOf(plain, needs, (body) => onDelayStage(setup, LONG_LEASE_MS, body)),
    ...casesOf({ lease: leaseCases }, needs, (body) => onDelayStage(setup, SHORT_LEASE_MS, body)),
  ];
}
