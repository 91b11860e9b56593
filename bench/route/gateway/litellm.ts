/** LiteLLM's proxy with one worker, in front of the provider. It is another process, whose end is bound to this one. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

const {
  LITELLM: program = 'litellm',
  PROVIDER_URL: provider = '',
  PATH,
  HOME = '/tmp',
  LITELLM_MASTER_KEY,
} = process.env;
const port = await freePort();
// JSON is YAML.
writeFileSync(
  'litellm.yaml',
  JSON.stringify({
    model_list: [
      {
        model_name: 'gpt-bench',
        litellm_params: {
          model: 'openai/gpt-bench',
          api_base: `${provider}/v1`,
          api_key: 'sk-bench',
        },
      },
    ],
    litellm_settings: { telemetry: false },
  }),
);
const args = ['--config', 'litellm.yaml', '--host', '127.0.0.1', '--port', String(port)];
const child = spawn(program, [...args, '--num_workers', '1', '--telemetry', 'False'], {
  env: {
    PATH,
    HOME,
    LITELLM_MASTER_KEY,
    LITELLM_LOG: 'ERROR',
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  },
  stdio: ['ignore', 'ignore', 'inherit'],
});
child.on('exit', (code) => process.exit(code ?? 1));
process.on('SIGTERM', () => child.kill());
process.on('exit', () => child.kill('SIGKILL'));
const url = `http://127.0.0.1:${port}`;
for (;;) {
  const answer = await fetch(`${url}/health/liveliness`).catch(() => undefined);
  if (answer?.ok) break;
  await pause(200);
}
console.log(JSON.stringify({ msg: 'listening', url }));
console.log(JSON.stringify({ msg: 'ready' }));

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port: free } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return free;
}
