/** The guide's workflows on a real Cyoda server: a criterion before and after its time, and a scheduled retry. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeCyoda } from '@redrive/services/vitest';
import { expect, test } from 'vitest';
import { RedriveProcess, TemporaryFolder } from './redrive-process.ts';

const guide = readFileSync(join(import.meta.dirname, '../../../docs/guides/cyoda.md'), 'utf8');
/** The JSON blocks of the guide that are workflows, in order. */
const workflows = [...guide.matchAll(/```json\n(\{\n {2}"importMode"[^]*?)```/g)].map(
  ([, text]) => text!,
);

const entity = (lastAttemptTime: string) => ({
  lastAttemptTime,
  retryDelaySeconds: 2,
  attemptCount: 1,
  exponentialBackoff: true,
  jitterEnabled: false,
});

test('the guide has a workflow with a criterion and one with a schedule', () => {
  const [criterion, schedule] = workflows.map((text) => JSON.stringify(JSON.parse(text)));
  expect(workflows).toHaveLength(2);
  expect(criterion).toContain('"name":"isRetryDelayElapsed"');
  expect(criterion).not.toContain('"schedule"');
  expect(schedule).toContain('"name":"nextRetryTime"');
  expect(schedule).not.toContain('isRetryDelayElapsed');
});

describeCyoda(({ httpUrl, grpcUrl, token }) => {
  const call = async (method: string, path: string, body?: string) => {
    const response = await fetch(`${httpUrl}${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.status, text: await response.text() };
  };
  const done = async (method: string, path: string, body?: string) => {
    const { status, text } = await call(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    return text === '' ? undefined : (JSON.parse(text) as unknown);
  };

  /** A model of its own with that workflow. */
  async function modelWith(workflow: string): Promise<string> {
    const model = `redrive-${randomBytes(4).toString('hex')}`;
    const sample = JSON.stringify(entity(new Date().toISOString()));
    await done('POST', `/model/import/JSON/SAMPLE_DATA/${model}/1`, sample);
    await done('PUT', `/model/${model}/1/lock`);
    await done('POST', `/model/${model}/1/workflow/import`, workflow);
    return model;
  }

  async function create(model: string, lastAttemptTime: string): Promise<string> {
    const body = JSON.stringify(entity(lastAttemptTime));
    const [made] = (await done('POST', `/entity/JSON/${model}/1`, body)) as [
      { entityIds: [string] },
    ];
    return made.entityIds[0];
  }

  async function stateOf(id: string): Promise<string> {
    const { meta } = (await done('GET', `/entity/${id}`)) as { meta: { state: string } };
    return meta.state;
  }

  async function member(folder: TemporaryFolder): Promise<RedriveProcess> {
    const env = token === undefined ? {} : { CYODA_TOKEN: token };
    const child = new RedriveProcess(['cyoda', '--url', grpcUrl, '--json'], folder.path, env);
    await child.logged('joined the Cyoda server');
    return child;
  }

  test('a manual retry is refused before its time and done after it', async () => {
    using folder = new TemporaryFolder();
    await using _child = await member(folder);
    const model = await modelWith(workflows[0]!);
    const early = await create(model, new Date().toISOString());
    const refused = await call(
      'PUT',
      `/entity/JSON/${early}/retry`,
      JSON.stringify(entity(new Date().toISOString())),
    );
    expect(refused.status).toBe(400);
    expect(refused.text).toContain('BACKOFF_WAIT');
    const past = new Date(Date.now() - 60_000).toISOString();
    const late = await create(model, past);
    await done('PUT', `/entity/JSON/${late}/retry`, JSON.stringify(entity(past)));
    expect(await stateOf(late)).toBe('RETRYING');
  });

  test('a scheduled retry fires by itself, at its time', async () => {
    using folder = new TemporaryFolder();
    await using _child = await member(folder);
    const model = await modelWith(workflows[1]!);
    const id = await create(model, new Date().toISOString());
    expect(await stateOf(id)).toBe('RETRY_PENDING');
    await expect.poll(() => stateOf(id), { timeout: 30_000, interval: 500 }).toBe('RETRYING');
  });
});
