import { describe, expect, it } from 'vitest';
import { MissingServer, present } from './missing.ts';
import { among } from './engine/verdicts.ts';
import { jsonLine, notRunLine, notRunText, table } from './report.ts';
import type { Result } from './result.ts';

const team = [
  { name: 'redrive', server: 'PostgreSQL 15' },
  { name: 'pg-boss', server: 'PostgreSQL 15' },
  { name: 'bullmq', server: 'Redis' },
  { name: 'raw', server: undefined },
] as const;

const without = (server: string) => (name: string) =>
  name === server ? `${name} is missing: nobody has it. To have it: install it` : undefined;

describe('a machine without a server', () => {
  it('has those who need another one, and says who is missing and why', () => {
    const { here, missing } = present(team, (one) => one.server, without('Redis'));
    expect(here.map(({ name }) => name)).toEqual(['redrive', 'pg-boss', 'raw']);
    expect(missing).toEqual({
      bullmq: 'Redis is missing: nobody has it. To have it: install it',
    });
    expect(present(team, (one) => one.server, without('NATS'))).toEqual({
      here: team,
      missing: {},
    });
  });

  it('does not run what needs it itself', () => {
    expect(() => present(team, (one) => one.server, without('PostgreSQL 15'))).toThrow(
      MissingServer,
    );
  });

  it('has no verdicts on those who are missing', () => {
    const verdict = { target: 'fast', measured: '1', met: true };
    const result: Result = { metric: 'ms', redrive: 1, peers: { raw: 2 } };
    expect(
      among(result, { raw: () => verdict, bullmq: () => ({ ...verdict, met: false }) }),
    ).toEqual([verdict]);
  });
});

describe('a report', () => {
  const heading = { suite: 'engine', case: 'drift', about: 'how late' };

  it('names who is missing, for people and for programs', () => {
    const missing = { bullmq: 'Redis is missing: no.' };
    const result: Result = { metric: 'ms', redrive: 1, peers: {}, missing };
    expect(table(heading, result)).toContain('\n    bullmq  not here: Redis is missing: no.');
    expect(JSON.parse(jsonLine(heading, result))).toMatchObject({ missing });
    expect(JSON.parse(jsonLine(heading, { ...result, missing: {} }))).not.toHaveProperty('missing');
  });

  it('has a place for a case that was not run', () => {
    const notRun = { notRun: 'Redis is missing: no.' };
    expect(notRunText(heading, notRun)).toBe(
      'engine · drift: how late\n  not run: Redis is missing: no.',
    );
    expect(JSON.parse(notRunLine(heading, notRun))).toEqual({
      suite: 'engine',
      case: 'drift',
      ...notRun,
    });
  });
});
