/** Contract section 1, Metrics and Configuration: the names, and what they mean after traffic that is known. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { describeService } from '@redrive/services/vitest';
import { describe, expect, test } from 'vitest';
import { eventually, RedriveProcess, TemporaryFolder } from './redrive-process.ts';
import { SLOW, useScene } from './scene.ts';

const server = join(import.meta.dirname, '../../../packages/server');
const HOUR_MS = 3_600_000;
const MAX_QUEUES = 200;

/** With the defaults that it prints. */
const contract: Readonly<Record<string, string>> = {
  SERVICE_NAME: 'retry-scheduler',
  HTTP_PORT: '8086',
  RABBITMQ_URL: '',
  RETRY_QUEUE: 'retry.scheduled',
  MANUAL_REVIEW_QUEUE: 'manual-review.pending',
  DEFAULT_MAX_RETRIES: '3',
  BASE_DELAY_MS: '2000',
  MAX_DELAY_MS: '60000',
  RETRY_POLL_INTERVAL_MS: '10000',
  DATABASE_URL: '',
  DEAD_LETTER_EXCHANGE: '',
  DEAD_LETTER_BINDINGS: '#',
  UNCLASSIFIED_AS: 'transient',
};

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  const scene = useScene();

  test(
    'after known traffic the four metrics say what happened, and nothing else',
    SLOW,
    async () => {
      const { service } = scene();
      const orders = await scene().queue();
      const nowhere = scene().name();
      const queue = orders.name;
      const sent = await Promise.all(
        Array.from({ length: 3 }, () => scene().retry({ original_queue: queue })),
      );
      const waiting = await scene().retry({
        original_queue: queue,
        next_retry_at_ms: Date.now() + HOUR_MS,
      });
      const used = await scene().retry({ original_queue: queue, retry_count: 3 });
      const wrong = await scene().retry({ original_queue: queue, classification: 1 });
      const lost = await scene().retry({ original_queue: nowhere });
      // The same again: nothing is scheduled by that.
      await service.taskThat(waiting, () => true);
      await scene().retry({ message_id: waiting, original_queue: queue, error_reason: 'again' });
      await service.taskThat(waiting, ({ error }) => error?.message === 'again');
      for (const id of sent) await service.taskThat(id, ({ status }) => status === 'retried');
      for (const id of [used, wrong, lost]) await service.item(id);

      // It is counted when a service starts, and then now and then.
      const another = await scene().start({}, '--only', 'api');
      await eventually(
        () => another.metric('retry_queue_depth'),
        (depth) => depth === 1,
      );
      await another.stop();
      expect(await service.metric('retries_executed_total', { queue, status: 'success' })).toBe(3);
      expect(await service.metric('retries_scheduled_total', { queue })).toBe(4);
      expect(await service.metric('retries_scheduled_total', { queue: nowhere })).toBe(1);
      expect(await service.metric('retries_executed_total', { queue, status: 'failed' })).toBe(0);
      expect(
        await service.metric('retries_executed_total', { queue: nowhere, status: 'failed' }),
      ).toBe(1);
      expect(await service.metric('retries_executed_total')).toBe(4);
      expect(await service.metric('retries_exhausted_total', { queue })).toBe(1);
      expect(await service.metric('retries_exhausted_total')).toBe(1);
      for (const reason of ['EXHAUSTED', 'PERMANENT', 'UNROUTABLE']) {
        expect(await service.metric('redrive_inbox_entered_total', { reason })).toBe(1);
      }
      const page = await service.metricsPage();
      for (const [name, type] of [
        ['retries_scheduled_total', 'counter'],
        ['retries_executed_total', 'counter'],
        ['retries_exhausted_total', 'counter'],
        ['retry_queue_depth', 'gauge'],
        ['redrive_drift_seconds', 'histogram'],
        ['redrive_oldest_due_age_seconds', 'gauge'],
        ['redrive_store_duration_seconds', 'histogram'],
        ['redrive_inbox_open', 'gauge'],
        ['redrive_broker_state', 'gauge'],
      ]) {
        expect(page).toContain(`# TYPE ${name} ${type}\n`);
      }
      expect(await service.metric('redrive_drift_seconds_count')).toBe(4);
      expect(await service.metric('redrive_broker_state', { state: 'connected' })).toBe(1);
    },
  );

  test('past the first 200 names of queues all others are one', async () => {
    const { service } = scene();
    const before = await service.metric('retries_scheduled_total');
    const more = MAX_QUEUES + 20;
    await Promise.all(
      Array.from({ length: more }, (_, n) =>
        scene().retry({ original_queue: `q-${n}`, next_retry_at_ms: Date.now() + HOUR_MS }),
      ),
    );
    await eventually(
      () => service.metric('retries_scheduled_total'),
      (count) => count === before + more,
    );
    const page = await service.metricsPage();
    const names = page.matchAll(/^retries_scheduled_total\{queue="([^"]+)"\}/gm);
    expect(new Set(Array.from(names, ([, name]) => name)).size).toBeLessThanOrEqual(MAX_QUEUES + 1);
    expect(await service.metric('retries_scheduled_total', { queue: 'other' })).toBeGreaterThan(19);
  });
});

describe('the configuration', () => {
  test('has the names and the defaults of the contract, also in .env.example', () => {
    using folder = new TemporaryFolder();
    const { status, stdout } = spawnSync(
      process.execPath,
      [join(server, 'src/cli/main.ts'), 'config', 'check', '--all', '--json'],
      { cwd: folder.path, env: { PATH: process.env['PATH'] }, encoding: 'utf8' },
    );
    expect(status).toBe(0);
    const { settings } = JSON.parse(stdout) as { settings: { name: string; value: string }[] };
    const found = new Map(settings.map(({ name, value }) => [name, value]));
    const example = parseEnv(
      readFileSync(join(server, '.env.example'), 'utf8').replaceAll(/^#(?=\w+=)/gm, ''),
    );
    for (const [name, value] of Object.entries(contract)) {
      expect([name, found.get(name)]).toEqual([name, value]);
      // What has no default has an example.
      expect(example).toHaveProperty(name);
      expect([name, value || example[name]]).toEqual([name, example[name]]);
    }
  });

  test('comes from .env too; a bad value stops the start, with every fault at once', async () => {
    using folder = new TemporaryFolder();
    writeFileSync(
      join(folder.path, '.env'),
      'HTTP_PORT=eighty\nBASE_DELAY_MS=-5\nRABBITMQ_URL=http://guest:geheim@localhost\n',
    );
    await using child = new RedriveProcess(['serve'], folder.path, { DEFAULT_MAX_RETRIES: 'lots' });
    expect(await child.exit).toBe(78);
    for (const name of ['HTTP_PORT', 'BASE_DELAY_MS', 'RABBITMQ_URL', 'DEFAULT_MAX_RETRIES']) {
      expect(child.err).toContain(name);
    }
    expect(child.err).not.toContain('geheim');
  });
});
