import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Io } from '../command.ts';
import { chunksOf, type Line, linesOf } from './lines.ts';

describe('lines', () => {
  it('are numbered from one, blank ones left out, whatever ends them', async () => {
    expect(await read('\uFEFFa\r\n\n  \nb\n\nc')).toEqual([
      { number: 1, text: 'a' },
      { number: 4, text: 'b' },
      { number: 6, text: 'c' },
    ]);
    expect(await read('')).toEqual([]);
  });

  it('are the same however they come in', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: fc.constantFrom('a', 'ü', '日', '\n', ' ') })),
        fc.integer({ min: 1, max: 9 }),
        async (parts, size) => {
          const bytes = Buffer.from(parts.join('\n'));
          const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
            bytes.subarray(i * size, (i + 1) * size),
          );
          expect(await collect(linesOf(chunks, 1000))).toEqual(
            await collect(linesOf([bytes], 1000)),
          );
        },
      ),
    );
  });

  it('that are too long are not kept, and those after them are read', async () => {
    const chunks = ['x'.repeat(6), 'x'.repeat(6), '\nok\n', 'y'.repeat(20)].map((text) =>
      Buffer.from(text),
    );
    expect(await collect(linesOf(chunks, 10))).toEqual([
      { number: 1 },
      { number: 2, text: 'ok' },
      { number: 3 },
    ]);
  });

  it('come from a file or from the standard input', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'lines-'));
    writeFileSync(join(folder, 'a.txt'), 'in a file');
    const io = { cwd: folder, input: () => Promise.resolve(Buffer.from('given')) } as unknown as Io;
    expect(await collect(linesOf(await chunksOf('a.txt', io), 99))).toEqual([
      { number: 1, text: 'in a file' },
    ]);
    expect(await collect(linesOf(await chunksOf('-', io), 99))).toEqual([
      { number: 1, text: 'given' },
    ]);
    await expect(collect(linesOf(await chunksOf('b.txt', io), 99))).rejects.toMatchObject({
      exit: 2,
      message: 'b.txt cannot be read: there is no such file.',
    });
    await expect(collect(linesOf(await chunksOf('.', io), 99))).rejects.toThrow('it is a folder');
    rmSync(folder, { recursive: true });
  });
});

function read(text: string): Promise<Line[]> {
  return collect(linesOf([Buffer.from(text)], 1000));
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
