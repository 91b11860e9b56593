import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceName } from '@redrive/services';
import { expect, test } from 'vitest';
import { findSchemathesis, runSchemathesis } from './fuzz-schemathesis.ts';
import { plant, withSeed } from './fuzz-seed.ts';
import { RedriveProcess, TemporaryFolder } from './redrive-process.ts';

const SECONDS = 50;

const checks = [
  'not_a_server_error',
  'response_schema_conformance',
  'status_code_conformance',
  'content_type_conformance',
  'negative_data_rejection',
];

test(
  'the running server is what its OpenAPI document says, by schemathesis',
  { timeout: 300_000 },
  async ({ task, skip }) => {
    const found = await findSchemathesis();
    if (found.state === 'missing') {
      const sentence = `schemathesis is missing: ${found.why}. To have it: ${found.wayOut}`;
      if (process.env['REDRIVE_REQUIRE_SERVICES'] === '1') throw new Error(sentence);
      // Told at the end of the run, with the servers that are missing.
      task.meta.missingService = { ...found, name: 'schemathesis' as ServiceName };
      return skip(sentence);
    }
    using folder = new TemporaryFolder();
    await using service = new RedriveProcess(['serve'], folder.path, {
      HTTP_PORT: '0',
      REDRIVE_LOG_FORMAT: 'json',
      REDRIVE_RATE_LIMIT: '100000',
    });
    const url = await service.ready();
    const document = (await (await fetch(`${url}/openapi.json`)).json()) as Parameters<
      typeof withSeed
    >[0];
    const file = join(folder.path, 'openapi.json');
    writeFileSync(file, JSON.stringify(withSeed(document, await plant(url))));

    const options = [
      `--url=${url}`,
      `--checks=${checks.join()}`,
      `--max-time=${SECONDS}`,
      // The same questions every time, unless somebody looks for new ones.
      `--seed=${process.env['REDRIVE_FUZZ_SEED'] ?? '1'}`,
      '--request-timeout=10',
      '--continue-on-failure',
      // It never ends.
      '--exclude-path=/api/v1/events',
      '--generation-database=none',
      '--output-truncate=false',
      '--no-color',
    ];
    const run = await runSchemathesis(found.path, ['run', file, ...options], folder.path);
    const { code, output } = run;
    console.log(output.slice(output.indexOf('SUMMARY')));
    expect(code, output).toBe(0);
    expect((await fetch(`${url}/health/live`)).status).toBe(200);
    expect(service.lines.filter((line) => /"level":"(error|fatal)"/.test(line))).toEqual([]);
    expect(service.err).toBe('');
  },
);
