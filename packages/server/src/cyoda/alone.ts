/** A member without a service around it: no store, no HTTP, so that failed evaluations are logged and counted only. */
import { systemClock } from 'redrive/internal';
import { createCriteria } from '../criteria/index.ts';
import { createObservers } from '../observe/index.ts';
import type { LogOutput } from '../observe/log/log.ts';
import type { Settings } from '../settings/settings.ts';
import { memberFor } from './index.ts';

export async function runMember(
  url: string,
  settings: Settings,
  until: Promise<void>,
  logTo?: LogOutput,
): Promise<void> {
  const instance = settings.instance ?? `cyoda-${process.pid}`;
  const clock = systemClock;
  const { log, metrics } = createObservers({ settings, instance, ...(logTo ? { logTo } : {}) });
  const {
    criterionOperationsWebhookUrl: _operations,
    criterionDevelopmentWebhookUrl: _development,
    ...others
  } = settings;
  const criteria = createCriteria({
    // Items and webhooks need a store.
    settings: { ...others, criterionReview: false },
    instance,
    clock,
    log,
    counts: metrics.criteria,
  });
  const { evaluator } = criteria;
  const member = memberFor(url, settings, { evaluator, clock, log, observer: metrics.cyoda });
  log.info({ url, tags: settings.cyodaTags }, 'joining the Cyoda server');
  member.start();
  await until;
  log.info('stopping: what has come is answered');
  await member.stop();
  await criteria.stop();
  log.info({ requests: metrics.cyoda.totals }, 'stopped');
}
