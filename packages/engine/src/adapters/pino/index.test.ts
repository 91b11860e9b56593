import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { type DestinationStream, pino } from 'pino';
import { ConfigError } from 'redrive';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import type { AuditEvent } from '../../ports/audit.ts';
import { auditSuite } from '../../testing/audit/audit-suite.ts';
import { pinoAudit } from './index.ts';

const event: AuditEvent = { event_type: 'retry_attempt', timestamp: '2026-01-01T00:00:00.000Z' };

let root: string;
let files = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'redrive-pino-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

/** Lines of a log that go to a file. */
function logFile(options: { sync: boolean; minLength?: number }) {
  const path = join(root, `${files++}.log`);
  const destination = pino.destination({ dest: path, ...options });
  return { path, destination };
}

async function eventsIn(path: string): Promise<AuditEvent[]> {
  // A destination that is not synchronous makes its file a little later.
  const lines = (existsSync(path) ? await readFile(path, 'utf8') : '')
    .split('\n')
    .filter((line) => line !== '');
  return lines.map((line) => (JSON.parse(line) as { audit_event: AuditEvent }).audit_event);
}

describe('the audit trail in a log of pino', () => {
  for (const options of [{ sync: true }, { sync: false, minLength: 4096 }]) {
    const open = async () => {
      const { path, destination } = logFile(options);
      const sink = pinoAudit(pino({ base: { event_type: 'of the logger' } }, destination));
      return {
        sink,
        written: () => eventsIn(path),
        close: async () => destination.destroy(),
      };
    };
    for (const { name, skip, run: assertCase } of auditSuite({ open })) {
      test.skipIf(skip)(`written ${JSON.stringify(options)} ${name}`, () => assertCase());
    }
  }
});

describe('a line of it', () => {
  it('has the type as its message, and the level asked for', async () => {
    const lines: string[] = [];
    const stream: DestinationStream = { write: (line) => void lines.push(line) };
    await pinoAudit(pino({}, stream), { level: 'warn' }).write([event]);
    expect(JSON.parse(lines[0]!)).toMatchObject({
      level: 40,
      msg: 'retry_attempt',
      audit_event: event,
    });
  });

  it('is refused, not lost, where the logger does not write its level', async () => {
    const lines: string[] = [];
    const stream: DestinationStream = { write: (line) => void lines.push(line) };
    const logger = pino({ level: 'error' }, stream);
    await expect(pinoAudit(logger).write([event])).rejects.toMatchObject({
      code: 'AUDIT_SINK_FAILED',
      message: expect.stringContaining('does not write the level info') as string,
    });
    await pinoAudit(logger).write([]);
    logger.level = 'info';
    await pinoAudit(logger).write([event]);
    expect(lines).toHaveLength(1);
  });

  it('fails the batch where the logger cannot flush', async () => {
    const stream = Object.assign(new Writable({ write: (_, _1, done) => done() }), {
      flush: (done: (error: Error) => void) => done(new Error('disk full')),
    });
    await expect(pinoAudit(pino({}, stream)).write([event])).rejects.toThrow('disk full');
  });
});

it('needs a logger, and a level that it has', () => {
  for (const odd of [null, undefined, {}, console]) {
    expect(() => pinoAudit(odd as never)).toThrow(ConfigError);
  }
  expect(() => pinoAudit(pino({ level: 'silent' }), { level: 'loud' })).toThrow(
    /must be a logger of pino with the level loud/,
  );
});
