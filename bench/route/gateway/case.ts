import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { makeToken } from '../../../packages/server/src/upkeep/token.ts';
import { cpuMs } from '../../engine/cpu.ts';
import { figureOf, noiseNote, percentile, spreadOf, takeTurns } from '../../engine/turns.ts';
import { atLeast, share } from '../../engine/verdicts.ts';
import type { Case, Result } from '../../result.ts';
import { HttpClient } from '../../service/http-client.ts';
import { type Program, redrive, Running } from '../../service/stage/program.ts';

const CONNECTIONS = 32;
/** Until all of it is compiled: services run for weeks. The slow ones are given up on. */
const WARM_UP_REQUESTS = 15_000;
const WARM_UP_MS = 10_000;
/** Requests, one at a time, in a turn that measures the first byte. */
const SINGLE = 200;
const LEAST = 0.7;

const PATH = '/v1/chat/completions';
const body = JSON.stringify({
  model: 'gpt-bench',
  messages: [{ role: 'user', content: 'Say hello, please. '.repeat(15) }],
});

interface Contestant {
  program: Program;
  path: string;
  headers?: Record<string, string>;
  /** Of its process. */
  env?: Record<string, string>;
  files?: Record<string, object>;
}

const script = (name: string): Program => ({ script: join(import.meta.dirname, name) });

export const gateway: Case = {
  name: 'gateway',
  about: `requests through a gateway to a local provider that answers at once, over ${CONNECTIONS} connections`,
  async run({ turns, spanMs }) {
    const notes = [noiseNote()];
    await using provider = await Running.start(script('provider.ts'), {});
    const contestants = contestantsFor(await provider.url);
    if (!('litellm' in contestants)) {
      notes.push('litellm is missing: it is not on the PATH, and LITELLM does not name it');
    }
    await using crew = new Crew();
    for (const [name, one] of Object.entries(contestants)) await crew.add(name, one);
    crew.direct(await provider.url);
    const names = Object.keys(contestants);
    const turnMs = spanMs / 4;
    for (const name of names) await crew.warmUp(name);
    const loads = await takeTurns(names, turns, (name) => crew.load(name, turnMs));
    const single = await takeTurns([...names, 'direct'], turns, (name) => crew.single(name));
    return resultOf(names, loads, single, notes);
  },
};

/** LiteLLM only where it is there. */
function contestantsFor(provider: string): Record<string, Contestant> {
  const policy = {
    version: '1.0',
    providers: [{ name: 'bench', weight: 100 }],
    timeout_ms: 30_000,
  };
  const { token, entry } = makeToken('bench', 'gateway');
  const own: Contestant = {
    program: redrive,
    path: `/gateway/chat${PATH}`,
    headers: { authorization: `Bearer ${token}` },
    env: {
      REDRIVE_TOKENS: entry,
      ROUTING_DIR: '.',
      ROUTING_GATEWAY: 'on',
      PROVIDER_KEY: 'sk-bench',
    },
    files: {
      'chat.json': policy,
      'providers.json': {
        bench: { base_url: provider, headers: { authorization: 'Bearer ${PROVIDER_KEY}' } },
      },
    },
  };
  const env = { PROVIDER_URL: provider };
  const all: Record<string, Contestant> = {
    redrive: own,
    'redrive-no-audit': { ...own, env: { ...own.env, REDRIVE_AUDIT: 'false' } },
    'fastify-proxy': { program: script('fastify-proxy.ts'), path: `/gateway/chat${PATH}`, env },
    portkey: {
      program: script('portkey.ts'),
      path: PATH,
      headers: {
        authorization: 'Bearer sk-bench',
        'x-portkey-provider': 'openai',
        'x-portkey-custom-host': `${provider}/v1`,
      },
      env: { TRUSTED_CUSTOM_HOSTS: '127.0.0.1' },
    },
  };
  const masterKey = `sk-${randomBytes(32).toString('hex')}`;
  const { LITELLM: program = 'litellm', HOME = '/tmp' } = process.env;
  const isThere = spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0;
  if (isThere) {
    all['litellm'] = {
      program: script('litellm.ts'),
      path: PATH,
      headers: { authorization: `Bearer ${masterKey}` },
      env: { ...env, LITELLM: program, HOME, LITELLM_MASTER_KEY: masterKey },
    };
  }
  return all;
}

interface Load {
  perSecond: number;
  cpuUs: number;
}

/** All contestants run all the time, and have nothing to do while it is not their turn. */
class Crew implements AsyncDisposable {
  readonly #members = new Map<string, { url: string; one: Contestant; running?: Running }>();

  async add(name: string, one: Contestant): Promise<void> {
    const { program, env = {}, files = {} } = one;
    const running = await Running.start(program, { env, files });
    this.#members.set(name, { url: await running.url, one, running });
  }

  /** The provider itself, without anything between. */
  direct(url: string): void {
    this.#members.set('direct', { url, one: { program: { script: '' }, path: PATH } });
  }

  async load(name: string, forMs: number): Promise<Load> {
    const { running } = this.#members.get(name)!;
    await using client = this.#client(name, CONNECTIONS);
    const used = () => (running ? cpuMs(running.pid) : 0);
    const before = used();
    const { answers, tookMs } = await client.ask(forMs);
    return { perSecond: (answers * 1000) / tookMs, cpuUs: ((used() - before) * 1000) / answers };
  }

  async warmUp(name: string): Promise<void> {
    const startMs = performance.now();
    for (let answers = 0; answers < WARM_UP_REQUESTS;) {
      if (performance.now() - startMs > WARM_UP_MS) return;
      const { perSecond } = await this.load(name, 500);
      answers += perSecond / 2;
    }
  }

  /** The median time to the first byte, one request at a time. */
  async single(name: string): Promise<number> {
    await using client = this.#client(name, 1);
    const connection = client.connections[0]!;
    const times: number[] = [];
    for (let i = 0; i < SINGLE; i++) {
      const status = await connection.ask();
      if (status !== 200) throw new Error(`${name} answered ${status}`);
      times.push(connection.firstByteMs);
    }
    return percentile(times, 0.5);
  }

  #client(name: string, connections: number): HttpClient {
    const { url, one } = this.#members.get(name)!;
    return new HttpClient(url, one.path, body, connections, 200, one.headers);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { running } of this.#members.values()) await running?.stop();
  }
}

function resultOf(
  names: readonly string[],
  loads: Record<string, Load[]>,
  single: Record<string, number[]>,
  notes: string[],
): Result {
  const figures = names.map(
    (name) => [name, figureOf(loads[name]!.map(({ perSecond }) => perSecond))] as const,
  );
  const rates = Object.fromEntries(figures.map(([name, { median }]) => [name, median]));
  const { redrive: rate = Number.NaN, ...peers } = rates;
  const verdicts = [share(LEAST, rate, Number(peers['fastify-proxy']), '@fastify/http-proxy')];
  for (const peer of ['portkey', 'litellm']) {
    if (peers[peer] !== undefined)
      verdicts.push(atLeast(1, rate, peers[peer], `as many as ${peer}`));
  }
  const cpu = names.map((name) => {
    return `${name} ${figureOf(loads[name]!.map(({ cpuUs }) => cpuUs)).median.toFixed(0)}`;
  });
  const direct = figureOf(single['direct']!).median;
  const added = names.map((name) => {
    const ms = figureOf(single[name]!).median - direct;
    return `${name} ${(ms * 1000).toFixed(0)}`;
  });
  return {
    metric: 'ops/s',
    redrive: rate,
    peers,
    spread: spreadOf(figures),
    verdicts,
    notes: [
      `added time to the first byte, p50 in µs, one request at a time: ${added.join(', ')}`,
      `CPU time of a request in µs, own process: ${cpu.join(', ')}`,
      ...notes,
    ],
  };
}
