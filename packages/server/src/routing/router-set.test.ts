import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError, type Clock, type RoutingPolicy } from 'redrive';
import { systemClock } from 'redrive/internal';
import { virtualClock } from 'redrive/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MAX_POLICIES } from './policy-file.ts';
import { createRouterSet, type RouterSet } from './router-set.ts';

type SetOptions = Parameters<typeof createRouterSet>[0];

let root: string;
let dir: string;
const open = new Set<RouterSet>();
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'redrive-routers-'));
  dir = join(root, 'routing');
  mkdirSync(dir);
});
afterEach(() => {
  for (const set of open) set.close();
  open.clear();
  rmSync(root, { recursive: true, force: true });
});

const breaker = { enabled: true, failure_threshold: 1 };
const policy = (version: string, more: object = {}) =>
  JSON.stringify({ version, weights: { a: 100 }, circuit_breaker: breaker, ...more });
const write = (name: string, text: string) => writeFileSync(join(dir, name), text);
const versionOf = (set: RouterSet, id: string) => set.get(id)?.policy.version;

/** A set with its log. `said` resolves with the next line of the log that has this text. */
function routers(clock: Clock = systemClock, options: Partial<SetOptions> = {}) {
  const lines: string[] = [];
  let tell: (() => void) | undefined;
  const line = (fields: object, message: string) => {
    lines.push(`${message} ${JSON.stringify(fields)}`);
    tell?.();
  };
  let heard = 0;
  const said = async (text: string): Promise<string> => {
    for (;;) {
      const found = lines.slice(heard).findIndex((one) => one.includes(text));
      if (found >= 0) {
        heard += found + 1;
        return lines[heard - 1]!;
      }
      await new Promise<void>((resolve) => {
        tell = resolve;
      });
    }
  };
  const log = { info: line, warn: line } as SetOptions['log'];
  const set = createRouterSet({ dir, log, clock, ...options });
  open.add(set);
  return { set, lines, said };
}

describe('the routers of a folder', () => {
  it('are made of its policies, and of nothing else', async () => {
    write('llm.json', policy('1.0'));
    write('mail.v2_x-1.json', policy('2.0'));
    write('providers.json', '{"not": "a policy"}');
    write('.hidden.json', 'no');
    write('notes.txt', 'no');
    write('llm.json~', 'no');
    const { set } = routers();
    await set.start();
    expect(set.list().map(({ id }) => id)).toEqual(['llm', 'mail.v2_x-1']);
    expect(versionOf(set, 'llm')).toBe('1.0');
    expect(set.get('llm')?.policy.id).toBe('llm');
    expect(set.get('__proto__')).toBeUndefined();
    expect(set.fault).toBeUndefined();
  });

  it('say what is wrong with files, each once', async () => {
    write('good.json', policy('1.0'));
    write('json.json', '{"version": "1.0",\n  oops}');
    write('faults.json', '{"version": 1, "fallbacks": [{"retry": 99}]}');
    write('large.json', ' '.repeat(300_000));
    write('deep.json', '['.repeat(1000) + ']'.repeat(1000));
    write('a b.json', policy('1.0'));
    mkdirSync(join(dir, 'folder.json'));
    const { set, lines } = routers();
    await set.start();
    await set.reload();
    const faults = Object.fromEntries(set.list().map(({ id, fault }) => [id, fault]));
    expect(faults).toMatchObject({
      json: { code: 'INVALID_JSON', message: 'The file is not JSON: line 2, column 3.' },
      faults: { code: 'INVALID_POLICY' },
      large: { code: 'TOO_LARGE', message: expect.stringContaining('262144') },
      deep: { code: 'JSON_TOO_DEEP' },
      'a b': { code: 'INVALID_VALUE', message: expect.stringContaining('a b.json') },
      folder: { code: 'UNREADABLE_FILE' },
    });
    expect(faults['good']).toBeUndefined();
    expect(faults['faults']?.faults.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['version', 'fallbacks.0.retry', 'fallbacks.0.to']),
    );
    expect(lines.filter((line) => line.startsWith('bad routing policy'))).toHaveLength(6);
  });

  it('take a file with a byte order mark', async () => {
    write('llm.json', `\uFEFF${policy('1.0')}`);
    const { set } = routers();
    await set.start();
    expect(versionOf(set, 'llm')).toBe('1.0');
  });

  it('are at most two hundred', async () => {
    for (let i = 0; i < MAX_POLICIES + 5; i++) {
      write(`p${String(i).padStart(4, '0')}.json`, policy('1.0'));
    }
    const { set, lines } = routers();
    await set.start();
    await set.reload();
    expect(set.list()).toHaveLength(MAX_POLICIES);
    expect(set.fault).toMatchObject({ code: 'TOO_MANY_POLICIES' });
    expect(lines.filter((line) => line.includes('Remove some'))).toHaveLength(1);
    unlinkSync(join(dir, 'p0000.json'));
    for (let i = 1; i < 5; i++) unlinkSync(join(dir, `p000${i}.json`));
    await set.reload();
    expect(set.fault).toBeUndefined();
  });

  it('have functions that say that nobody calls providers here', async () => {
    write('llm.json', policy('1.0'));
    const { set } = routers();
    await set.start();
    await expect(set.get('llm')?.call(undefined)).rejects.toMatchObject({
      cause: expect.objectContaining({ code: 'CANNOT_CALL_PROVIDER' }),
    });
  });
});

describe('a change of a file', () => {
  it('is noticed, and the provider keeps its breaker', async () => {
    write('llm.json', policy('1.0'));
    const { set, said } = routers();
    await set.start();
    await said('loaded');
    await set.get('llm')?.report({ provider: 'a', status: 'timeout' });
    write('llm.json', policy('1.1'));
    expect(await said('loaded')).toContain('"version":"1.1"');
    expect(versionOf(set, 'llm')).toBe('1.1');
    expect(set.get('llm')?.health()['a']).toMatchObject({ state: 'open', calls: 1 });
  });

  it('that replaces it as editors do, by a rename, is noticed', async () => {
    write('llm.json', policy('1.0'));
    const { set, said } = routers();
    await set.start();
    await said('loaded');
    for (const version of ['1.1', '1.2']) {
      write('.llm.json.swp', policy(version));
      renameSync(join(dir, '.llm.json.swp'), join(dir, 'llm.json'));
      expect(await said('loaded')).toContain(`"version":"${version}"`);
    }
    expect(versionOf(set, 'llm')).toBe('1.2');
  });

  it('of a config map of Kubernetes, by the exchange of a link, is noticed', async () => {
    const publish = (version: string) => {
      const folder = `..${version}`;
      mkdirSync(join(dir, folder));
      write(join(folder, 'llm.json'), policy(version));
      symlinkSync(folder, join(dir, '..data_tmp'));
      renameSync(join(dir, '..data_tmp'), join(dir, '..data'));
    };
    publish('1.0');
    symlinkSync('..data/llm.json', join(dir, 'llm.json'));
    const { set, said } = routers();
    await set.start();
    await said('loaded');
    publish('1.1');
    expect(await said('loaded')).toContain('"version":"1.1"');
  });

  it('to something bad keeps the last good policy, is said once, and is healed', async () => {
    write('llm.json', policy('1.0'));
    const { set, lines, said } = routers();
    await set.start();
    await said('loaded');
    write('llm.json', '{ half of it');
    expect(await said('bad routing policy: the last good one stays in force')).toContain('llm');
    expect(versionOf(set, 'llm')).toBe('1.0');
    expect(set.list()).toMatchObject([{ id: 'llm', fault: { code: 'INVALID_JSON' } }]);
    write('llm.json', '{ half of it');
    await set.reload();
    await set.reload();
    expect(lines.filter((line) => line.startsWith('bad'))).toHaveLength(1);
    write('llm.json', policy('1.1'));
    await said('loaded');
    expect(set.list()).toMatchObject([{ id: 'llm', fault: undefined }]);
    expect(versionOf(set, 'llm')).toBe('1.1');
  });

  it('is found by looking now and then where the system gives no hint', async () => {
    const clock = virtualClock();
    write('llm.json', policy('1.0'));
    const { set, said } = routers(clock);
    await set.start();
    await said('loaded');
    write('llm.json', policy('1.1'));
    write('new.json', policy('2.0'));
    await clock.advance(10_000);
    expect(await said('loaded')).toContain('1.1');
    expect(await said('loaded')).toContain('new');
    unlinkSync(join(dir, 'llm.json'));
    await clock.advance(10_000);
    expect(await said('removed')).toContain('llm');
    expect(set.get('llm')).toBeUndefined();
    expect(set.list().map(({ id }) => id)).toEqual(['new']);
  });

  it('during a reading is read after it', async () => {
    write('a.json', policy('1.0'));
    write('b.json', policy('1.0'));
    let again: Promise<void> | undefined;
    const { set } = routers(virtualClock(), {
      // While b is read, a was read already.
      optionsFor: ({ id }: RoutingPolicy) => {
        if (id === 'b') {
          write('a.json', policy('1.1'));
          again = set.reload();
        }
        return {};
      },
    });
    await set.reload();
    await again;
    expect(versionOf(set, 'a')).toBe('1.1');
  });
});

describe('a folder that is away', () => {
  it('leaves the policies of before in force, and is found again', async () => {
    const clock = virtualClock();
    write('llm.json', policy('1.0'));
    const { set, lines, said } = routers(clock);
    await set.start();
    await said('loaded');
    renameSync(dir, join(root, 'elsewhere'));
    for (let i = 0; i < 3; i++) {
      await clock.advance(10_000);
      await set.reload();
    }
    expect(set.fault).toMatchObject({ code: 'UNREADABLE_FILE' });
    expect(set.fault?.message).toContain('ENOENT');
    expect(lines.filter((line) => line.includes('cannot be read'))).toHaveLength(1);
    expect(versionOf(set, 'llm')).toBe('1.0');
    mkdirSync(dir);
    write('llm.json', policy('1.1'));
    await clock.advance(10_000);
    await said('1.1');
    await set.reload();
    expect(set.fault).toBeUndefined();
  });

  it('and made again is watched again', async () => {
    const clock = virtualClock();
    write('llm.json', policy('1.0'));
    const { set, said } = routers(clock);
    await set.start();
    renameSync(dir, join(root, 'elsewhere'));
    mkdirSync(dir);
    write('llm.json', policy('1.1'));
    await clock.advance(10_000);
    await said('1.1');
    // Hints that came before.
    await clock.advance(100);
    write('llm.json', policy('1.2'));
    // A hint of the system, and not the next look.
    await vi.waitUntil(() => clock.pending === 2);
    await clock.advance(100);
    await said('1.2');
    await set.reload();
    expect(versionOf(set, 'llm')).toBe('1.2');
  });

  it('at the start is no reason not to start', async () => {
    const clock = virtualClock();
    rmSync(dir, { recursive: true });
    const { set, said } = routers(clock);
    await set.start();
    expect(set.list()).toEqual([]);
    mkdirSync(dir);
    write('llm.json', policy('1.0'));
    await clock.advance(10_000);
    await said('loaded');
    expect(versionOf(set, 'llm')).toBe('1.0');
  });

  it.skipIf(process.getuid?.() === 0)(
    'keeps the policy of a file that may not be read',
    async () => {
      write('llm.json', policy('1.0'));
      const { set } = routers(virtualClock());
      await set.start();
      chmodSync(join(dir, 'llm.json'), 0);
      await set.reload();
      expect(versionOf(set, 'llm')).toBe('1.0');
      expect(set.list()).toMatchObject([{ fault: { code: 'UNREADABLE_FILE' } }]);
    },
  );
});

describe('options for a policy', () => {
  it('give functions, and can be given again', async () => {
    write('llm.json', policy('1.0'));
    let answer = 'one';
    const { set } = routers(virtualClock(), {
      optionsFor: ({ id }: RoutingPolicy) => ({
        providers: { a: () => `${id} ${answer}` },
      }),
    });
    await set.start();
    await set.get('llm')?.report({ provider: 'a', status: 'ok' });
    expect((await set.get('llm')?.call(undefined))?.value).toBe('llm one');
    const before = set.get('llm');
    answer = 'two';
    set.rebuild();
    expect(set.get('llm')).not.toBe(before);
    expect((await set.get('llm')?.call(undefined))?.value).toBe('llm two');
    expect(set.get('llm')?.health()['a']).toMatchObject({ calls: 3 });
  });

  it('that refuse a policy are a fault of it until they take it', async () => {
    write('llm.json', policy('1.0'));
    write('bad.json', '{');
    let isGood = false;
    const { set, lines } = routers(virtualClock(), {
      optionsFor: () => {
        if (!isGood) throw new ConfigError('INVALID_CONFIG', 'providers.json has no a.');
        return {};
      },
    });
    await set.start();
    expect(set.get('llm')).toBeUndefined();
    expect(set.list()[1]).toMatchObject({ fault: { message: 'providers.json has no a.' } });
    isGood = true;
    set.rebuild();
    expect(versionOf(set, 'llm')).toBe('1.0');
    expect(set.list()).toMatchObject([
      { id: 'bad', fault: { code: 'INVALID_JSON' } },
      { id: 'llm', fault: undefined, loadedAtMs: expect.any(Number) },
    ]);
    isGood = false;
    set.rebuild();
    expect(versionOf(set, 'llm')).toBe('1.0');
    expect(set.list()[1]).toMatchObject({ fault: { code: 'INVALID_CONFIG' } });
    expect(lines.at(-1)).toContain('the last good one stays in force');
  });

  it('have a listener beside that of the set', async () => {
    write('llm.json', policy('1.0'));
    const heard: string[] = [];
    const { set } = routers(virtualClock(), {
      on: (id, { type }) => heard.push(`set ${id} ${type}`),
      optionsFor: () => ({ on: ({ type }) => heard.push(`own ${type}`) }),
    });
    await set.start();
    await set.get('llm')?.decide();
    expect(heard).toEqual(['set llm decision', 'own decision']);
  });
});
