/** The criteria of the service: one evaluator for all doors, and what becomes of failed evaluations. */
import type { Delivery, Engine } from '@redrive/engine';
import type { Logger } from 'pino';
import type { Clock } from 'redrive';
import type { CriterionCounts } from '../observe/metrics/criterion-counts.ts';
import type { Settings } from '../settings/settings.ts';
import { criterionDelivery } from './delivery.ts';
import { ErrorLog } from './error-log.ts';
import { CriterionEvaluator, type Evaluator } from './evaluator.ts';
import { RecentAnswers } from './recent.ts';
import { ReviewWriter } from './review-writer.ts';
import { RouteWebhook } from './route-webhook.ts';
import { SettingsInForce } from './settings.ts';

interface CriteriaOptions {
  settings: Settings;
  instance: string;
  clock: Clock;
  log: Logger;
  counts: CriterionCounts;
}

export interface Criteria {
  readonly evaluator: Evaluator;
  readonly settings: SettingsInForce;
  readonly recent: RecentAnswers;
  /** Where replays of failed evaluations go. */
  readonly delivery: Delivery;
  /** Connects the engine, which stores failed evaluations and delivers webhooks. */
  attach(engine: Pick<Engine, 'report' | 'submit' | 'stats'>): void;
  /** Takes the deployment's seed from the store, which is open from now on. */
  started(): void;
  /** Writes the failed evaluations that wait, as far as the store takes them in time. */
  stop(): Promise<void>;
}

export function createCriteria(options: CriteriaOptions): Criteria {
  const { settings, clock, log, counts } = options;
  const inForce = new SettingsInForce(settings.criteria);
  const recent = new RecentAnswers();
  const errors = new ErrorLog({ log, clock });
  const routes = routesOf(options);
  const { maxPayloadBytes } = settings;
  const writer = new ReviewWriter({ clock, log, counts, maxPayloadBytes });
  counts.waiting = () => writer.size;
  let engine: Pick<Engine, 'stats'> | undefined;
  let seed = 0;
  const evaluator = new CriterionEvaluator({
    settings: inForce,
    clock,
    counts,
    recent,
    seed: () => seed,
    onError: (failed) => {
      errors.add(failed);
      for (const route of routes) route.add(failed);
    },
    ...(settings.criterionReview
      ? { review: (name, request, result) => writer.add(name, request, result) }
      : {}),
  });
  return {
    evaluator,
    settings: inForce,
    recent,
    delivery: criterionDelivery(evaluator),
    attach: (to) => {
      engine = to;
      writer.attach((reports) => to.report(reports));
      for (const route of routes) route.attach(to);
    },
    started: () => {
      seed = engine?.stats().seed ?? 0;
    },
    stop: async () => {
      errors.stop();
      for (const route of routes) route.stop();
      await writer.stop();
    },
  };
}

function routesOf({ settings, instance, clock, log }: CriteriaOptions): RouteWebhook[] {
  const { serviceName } = settings;
  const urls = [
    ['operations', settings.criterionOperationsWebhookUrl],
    ['development', settings.criterionDevelopmentWebhookUrl],
  ] as const;
  return urls.flatMap(([audience, url]) =>
    url === undefined
      ? []
      : [new RouteWebhook({ audience, url, serviceName, instance, clock, log })],
  );
}
