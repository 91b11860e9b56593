import { execFile } from 'node:child_process';
import { appendFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { ConfigError } from 'redrive';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import type { AuditEvent } from '../../ports/audit.ts';
import { auditSuite } from '../../testing/audit/audit-suite.ts';
import { jsonlFile, readJsonl } from './index.ts';

let root: string;
let path: string;
let files = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'redrive-jsonl-'));
});
beforeEach(() => {
  path = join(root, `${files++}`, 'deep', 'audit.jsonl');
});
afterAll(() => rm(root, { recursive: true, force: true }));

function event(sequence: number, more: object = {}): AuditEvent {
  const redrive = { instance: 'one', run: 1, sequence };
  return { event_type: 'retry_attempt', timestamp: '2025-01-01T00:00:00.000Z', redrive, ...more };
}

async function all(reading = readJsonl(path)): Promise<AuditEvent[]> {
  const events: AuditEvent[] = [];
  for await (const one of reading) events.push(one);
  return events;
}

const sequences = (events: readonly AuditEvent[]) => events.map((one) => one.redrive?.sequence);

describe('the audit trail in a file', () => {
  const open = (options: object) => async () => {
    const own = join(root, `${files++}`, 'audit.jsonl');
    const sink = jsonlFile({ path: own, ...options });
    return { sink, written: () => all(readJsonl(own)), close: () => sink.close!() };
  };
  for (const { name, skip, run: assertCase } of auditSuite({ open: open({}) })) {
    test.skipIf(skip)(`${name}`, () => assertCase());
  }
  const small = open({ maxBytes: 500, keep: 1000, fsync: true });
  for (const { name, skip, run: assertCase } of auditSuite({ open: small })) {
    test.skipIf(skip)(`in files of 500 bytes, on the disk, ${name}`, () => assertCase());
  }
});

describe('a file', () => {
  it('is made with its folder, and goes on where it ended', async () => {
    for (const n of [1, 2]) {
      const sink = jsonlFile(path);
      await sink.write([event(n)]);
      await sink.close?.();
    }
    const text = await readFile(path, 'utf8');
    expect(text).toBe(`${JSON.stringify(event(1))}\n${JSON.stringify(event(2))}\n`);
  });

  it('may be named by a URL, as an object or as a text', async () => {
    for (const url of [pathToFileURL(path), String(pathToFileURL(path))]) {
      const sink = jsonlFile({ path: url });
      await sink.write([event(1)]);
      await sink.close?.();
    }
    expect(await all(readJsonl(pathToFileURL(path)))).toHaveLength(2);
  });

  it('whose last line a crash has torn loses that line and no other', async () => {
    const sink = jsonlFile(path);
    await sink.write([event(1)]);
    await sink.close?.();
    await appendFile(path, JSON.stringify(event(2)).slice(0, 40));
    const after = jsonlFile(path);
    await after.write([event(3), event(4)]);
    await after.close?.();
    const reading = readJsonl(path);
    expect(sequences(await all(reading))).toEqual([1, 3, 4]);
    expect(reading.torn).toBe(1);
  });

  it('whose last line only lacks its end loses nothing', async () => {
    const sink = jsonlFile(path);
    await sink.write([event(1)]);
    await sink.close?.();
    await writeFile(path, (await readFile(path, 'utf8')).trimEnd());
    const after = jsonlFile(path);
    await after.write([event(2)]);
    await after.close?.();
    const reading = readJsonl(path);
    expect(sequences(await all(reading))).toEqual([1, 2]);
    expect(reading.torn).toBe(0);
  });

  it('that cannot be written fails the write, and is tried anew by the next', async () => {
    const folder = join(root, `${files++}`);
    await writeFile(folder, 'a file in the way');
    const sink = jsonlFile(join(folder, 'audit.jsonl'));
    await expect(sink.write([event(1)])).rejects.toThrow(/EEXIST|ENOTDIR/);
    await rm(folder);
    await sink.write([event(2)]);
    await sink.close?.();
    expect(sequences(await all(readJsonl(join(folder, 'audit.jsonl'))))).toEqual([2]);
  });

  it.skipIf(process.platform === 'win32')(
    'takes back what could be written only in part, and goes on',
    async () => {
      // No file of that process may be larger than 8 KiB: the second batch ends in the middle.
      const script = `
        const { jsonlFile } = await import(${JSON.stringify(new URL('index.ts', import.meta.url))});
        const sink = jsonlFile(${JSON.stringify(path)});
        const event = (n, text) => ({ event_type: 'a', timestamp: '', n, text });
        await sink.write([event(1, 'x'.repeat(4000))]);
        await sink.write([event(2, 'x'.repeat(2000)), event(3, 'x'.repeat(9000))]).catch((error) => {
          console.log(error.code);
        });
        await sink.write([event(4, 'x')]);
        await sink.close();`;
      const limited = 'ulimit -f 8 && exec "$0" --input-type=module -e "$1"';
      const run = promisify(execFile);
      const { stdout } = await run('bash', ['-c', limited, process.execPath, script]);
      expect(stdout).toBe('EFBIG\n');
      const reading = readJsonl(path);
      expect((await all(reading)).map((one) => one['n'])).toEqual([1, 4]);
      expect(reading.torn).toBe(0);
    },
  );

  it('may be closed twice, and is opened again by a write', async () => {
    const sink = jsonlFile(path);
    await sink.close?.();
    await sink.write([event(1)]);
    await sink.close?.();
    await sink.close?.();
    await sink.write([event(2)]);
    await sink.close?.();
    expect(sequences(await all())).toEqual([1, 2]);
  });
});

describe('a file that is full', () => {
  const lineBytes = JSON.stringify(event(1)).length + 1;

  it('is put aside, the oldest go, and the rest is read in order', async () => {
    const sink = jsonlFile({ path, maxBytes: 2 * lineBytes, keep: 2 });
    for (let n = 1; n <= 9; n++) await sink.write([event(n)]);
    await sink.close?.();
    const folder = join(path, '..');
    expect((await readdir(folder)).toSorted()).toEqual([
      'audit.jsonl',
      'audit.jsonl.1',
      'audit.jsonl.2',
    ]);
    expect((await stat(`${path}.1`)).size).toBe(2 * lineBytes);
    expect(sequences(await all())).toEqual([5, 6, 7, 8, 9]);
  });

  it('goes, where none is kept', async () => {
    const sink = jsonlFile({ path, maxBytes: lineBytes, keep: 0 });
    for (let n = 1; n <= 3; n++) await sink.write([event(n)]);
    await sink.close?.();
    expect(sequences(await all())).toEqual([3]);
  });

  it('takes a batch that is larger than itself whole', async () => {
    const sink = jsonlFile({ path, maxBytes: lineBytes, keep: 5 });
    await sink.write([event(1)]);
    await sink.write([event(2), event(3), event(4)]);
    await sink.write([event(5)]);
    await sink.close?.();
    expect((await stat(`${path}.1`)).size).toBe(3 * lineBytes);
    expect(sequences(await all())).toEqual([1, 2, 3, 4, 5]);
  });

  it('loses no other where a crash came between two renames', async () => {
    const sink = jsonlFile({ path, maxBytes: lineBytes, keep: 3 });
    for (let n = 1; n <= 3; n++) await sink.write([event(n)]);
    // As if path.1 had just become path.3, and path not yet path.1.
    await rm(`${path}.1`);
    for (let n = 4; n <= 5; n++) await sink.write([event(n)]);
    await sink.close?.();
    expect(sequences(await all())).toEqual([1, 3, 4, 5]);
  });
});

describe('reading', () => {
  it('finds nothing where there is no file', async () => {
    expect(await all()).toEqual([]);
  });

  it('takes no other file for one that was put aside', async () => {
    const sink = jsonlFile(path);
    await sink.write([event(1)]);
    await sink.close?.();
    for (const other of ['.bak', '.01', '.1.gz', '.0', 'x.1']) {
      await writeFile(path + other, `${JSON.stringify(event(99))}\n`);
    }
    expect(sequences(await all())).toEqual([1]);
  });

  it('goes on with what it began while the file is put aside', async () => {
    const sink = jsonlFile({ path, maxBytes: 1, keep: 1 });
    await sink.write([event(1)]);
    await sink.write([event(2)]);
    const found: AuditEvent[] = [];
    for await (const one of readJsonl(path)) {
      found.push(one);
      if (found.length === 1) for (const n of [3, 4, 5]) await sink.write([event(n)]);
    }
    await sink.close?.();
    expect(sequences(found)).toEqual([1, 2]);
  });

  it('counts lines that are no events, and those longer than any event, and goes on', async () => {
    const sink = jsonlFile(path);
    await sink.write([event(1)]);
    await sink.close?.();
    const long = JSON.stringify(event(2, { text: 'x'.repeat(17 * 1024 * 1024) }));
    await appendFile(path, `null\n"text"\n{}\n\n${long}\n${JSON.stringify(event(3))}\n`);
    const reading = readJsonl(path);
    expect(sequences(await all(reading))).toEqual([1, 3]);
    expect(reading.torn).toBe(5);
    await all(reading);
    expect(reading.torn).toBe(5);
  });

  it('puts characters together that lie across two pieces of the file', async () => {
    const texts = Array.from({ length: 50 }, (_, n) => 'ü测🚀'.repeat(900 + n));
    const sink = jsonlFile(path);
    await sink.write(texts.map((text, n) => event(n, { text })));
    await sink.close?.();
    expect((await all()).map((one) => one['text'])).toEqual(texts);
  });
});

describe('options', () => {
  it('with faults are refused, all at once', () => {
    const wrong = { path: '', maxBytes: 0, keep: -1, fsink: true };
    expect(() => jsonlFile(wrong)).toThrow(ConfigError);
    expect(() => jsonlFile(wrong)).toThrow(/maxBytes[^]*keep[^]*fsink[^]*path/);
  });

  it.each([new URL('https://example.com/a'), 7, ''])('know that %s is no file', (odd) => {
    expect(() => readJsonl(odd as string)).toThrow(ConfigError);
    expect(() => jsonlFile({ path: odd as string })).toThrow(ConfigError);
  });
});
