import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Which of them: those of whole processes and of every version (`long`), or those that take a minute and more each (`storm`). */
const kind = process.env['REDRIVE_TESTS'];
/** On the oldest version of PostgreSQL too. */
const versions = 'packages/engine/src/adapters/postgres/**/*.test.ts';
/** All cases and seeds of delay queues, of which some run with the other tests too. */
const whole = [
  'packages/engine/src/adapters/redis/delay-queue/conformance.test.ts',
  'packages/engine/src/delay-queue/simulation.test.ts',
  'packages/engine/src/delay-queue/store/conformance.test.ts',
];
/** Long ones, with processes and servers that come and go. */
const slow = [
  'test/docs/{examples,dead-letters,quick-start}.test.ts',
  'packages/engine/src/adapters/{rabbitmq,nats}/{consume,outages,publisher}.test.ts',
  // Kafka takes seconds to start, and much memory: no test that needs it is in `npm test`.
  'packages/engine/src/adapters/kafka/**/{conformance,consume,group,outages,processes,producer,publish,queue,security}.test.ts',
  'packages/engine/src/adapters/nats/{cluster,idempotency/*,operations/lost-answers}.test.ts',
  'packages/engine/src/adapters/sqlite/processes.test.ts',
  'packages/engine/src/adapters/{redis,sqlite}/idempotency/idempotency.test.ts',
  'packages/engine/src/adapters/postgres/idempotency/{handlers,idempotency}.test.ts',
  'packages/engine/src/adapters/rabbitmq/{conformance,publish,topology}.test.ts',
  'packages/engine/src/dispatch/poison.test.ts',
  'packages/engine/src/adapters/postgres/{conformance,schema/{examine,migrate},outages,pgbouncer}.test.ts',
  'packages/engine/src/adapters/redis/delay-queue/{cluster,full,processes,security}.test.ts',
  // Suites that are held to find broken stores.
  'packages/engine/src/testing/{delay-queue/delay-queue,inbox/inbox,schedule/schedule}-suite.test.ts',
  'packages/notifications/src/testing/repository/repository-suite.test.ts',
  'packages/notifications/src/adapters/mongodb/*.test.ts',
  'packages/notifications/src/service/pause-servers.test.ts',
  'packages/server/src/{demo/demo,upkeep/doctor,routing/nats/responder,notifications/{servers,service,store-clock}}.test.ts',
  'packages/server/src/{criteria,cyoda,gateway,routing}/service.test.ts',
  'packages/server/src/http/{app,guard,event-readers}.test.ts',
  'packages/server/src/http/routes/{bulk,criteria,criteria-cases,retries,review,routing,service,tasks}.test.ts',
  'packages/server/src/criteria/review.test.ts',
  'packages/server/src/cli/commands/{bulk,review,submit,tasks}.test.ts',
  'test/services/{kafka,mongo,nats,postgres,rabbitmq,redis-cluster}.test.ts',
  'scripts/sim/run-seeds.test.ts',
];
const storms = 'test/e2e/service/{storm,fuzz}*.test.ts';

export default defineConfig({
  test: {
    // Generous: a busy machine must not fail a test that is only slow there.
    testTimeout: 30_000,
    // A server may have to start first.
    hookTimeout: 60_000,
    // On two cores vitest would use one: much of the time is spent in servers and child processes, and most of the long
    // tests' in waiting for those.
    maxWorkers: Math.max(kind === 'long' ? 3 : 2, availableParallelism() - 1),
    globalSetup: ['test/services/global-setup.ts'],
    reporters: ['default', './test/services/reporter.ts'],
    // Whole processes that are started, killed and cut off, and older servers, run apart: `npm run test:long`, in CI too.
    include: { long: ['test/e2e/**/*.test.ts', versions, ...whole, ...slow], storm: [storms] }[
      kind ?? ''
    ] ?? [
      'packages/*/src/**/*.test.ts',
      'scripts/**/*.test.ts',
      'test/**/*.test.ts',
      'bench/**/*.test.ts',
    ],
    exclude: { long: [storms], storm: [] }[kind ?? ''] ?? [
      'test/e2e/**',
      '**/node_modules/**',
      ...slow,
    ],
    coverage: {
      provider: 'v8',
      include: ['packages/*/src/**/*.ts'],
      exclude: ['**/*.test.ts'],
      reporter: ['text', 'json-summary'],
      thresholds: {
        'packages/core/src/**': { lines: 95, branches: 95 },
        'packages/engine/src/**': { lines: 90, branches: 85 },
        'packages/server/src/**': { lines: 85, branches: 80 },
        // What decides is pure, so there is no excuse for a line that no test reaches.
        'packages/core/src/{decide*,retry,{run,policy,failure,audit,criteria,categories,idempotency,idempotency/http}/*}.ts':
          {
            lines: 100,
            branches: 100,
          },
      },
    },
  },
});
