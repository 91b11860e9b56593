/** What the tests of the member share: a Cyoda server, a member that joins it, and an evaluator. */
import { EventEmitter, once } from 'node:events';
import { CyodaServer, type CyodaServerOptions, type MemberStream } from '@redrive/services/cyoda';
import type { Clock, CriterionSettings } from 'redrive';
import { systemClock } from 'redrive/internal';
import { expect, it, onTestFinished } from 'vitest';
import { CriterionEvaluator, type Evaluator } from '../criteria/evaluator.ts';
import { RecentAnswers } from '../criteria/recent.ts';
import { SettingsInForce } from '../criteria/settings.ts';
import { type CyodaMember, createCyodaMember } from './member.ts';

type CyodaMemberOptions = Parameters<typeof createCyodaMember>[0];

export interface Line {
  level: 'debug' | 'info' | 'warn' | 'error';
  fields: Record<string, unknown>;
  message: string;
}

export interface Stage {
  server: CyodaServer;
  member: CyodaMember;
  /** What the member logged. */
  lines: Line[];
  /** The next line with this code, or one that was there and that nobody has asked for. */
  logged(code: string): Promise<Line>;
  /** Resolves once so many were counted. */
  counted(name: string, least: number): Promise<void>;
  /** What it counted: `joined`, codes, and `request <outcome>`. */
  counts: Record<string, number>;
}

export async function stage(
  options: Partial<CyodaMemberOptions> = {},
  serverOptions: CyodaServerOptions = {},
): Promise<Stage> {
  const server = await CyodaServer.start(serverOptions);
  onTestFinished(() => server.stop());
  return { server, ...memberOf(server.url, options) };
}

export function memberOf(
  url: string,
  options: Partial<CyodaMemberOptions> = {},
): Omit<Stage, 'server'> {
  const lines: Line[] = [];
  const counts: Record<string, number> = {};
  const changes = new EventEmitter().setMaxListeners(0);
  const asked = new Set<Line>();
  const count = (name: string, by = 1) => {
    counts[name] = (counts[name] ?? 0) + by;
    changes.emit('change');
  };
  const line = (level: Line['level']) => (fields: unknown, message?: string) => {
    lines.push({ level, fields: fields as Line['fields'], message: message ?? '' });
    changes.emit('change');
  };
  const until = async <T>(look: () => T | undefined): Promise<T> => {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      await once(changes, 'change');
    }
  };
  const logged = (code: string) =>
    until(() => {
      const found = lines.find((one) => one.fields['code'] === code && !asked.has(one));
      if (found) asked.add(found);
      return found;
    });
  const counted = async (name: string, least: number) => {
    await until(() => ((counts[name] ?? 0) >= least ? true : undefined));
  };
  const log = {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
  };
  const member = createCyodaMember({
    url,
    tokenSource: () => Promise.resolve(undefined),
    tags: ['retry-timing'],
    evaluator: plainEvaluator(options.clock),
    log,
    observer: {
      joined: (result) => count(result),
      requests: (outcome, by) => count(`request ${outcome}`, by),
    },
    ...options,
  });
  onTestFinished(() => member.stop());
  return { member, lines, counts, logged, counted };
}

/** Starts the member, and resolves once the server has greeted it and knows that it serves. */
export async function joined({ server, member }: Stage): Promise<MemberStream> {
  member.start();
  const stream = await server.joined();
  await stream.keepAlive();
  return stream;
}

/** The service's own, with nobody who looks on. */
export function plainEvaluator(
  clock: Clock = systemClock,
  settings: CriterionSettings = {},
): Evaluator {
  return new CriterionEvaluator({
    settings: new SettingsInForce(settings),
    clock,
    counts: { evaluated: () => undefined, failed: () => undefined },
    recent: new RecentAnswers(),
    seed: () => 0,
    onError: () => undefined,
  });
}

/** An entity whose delay of a minute is over, or not. */
export const entityAt = (currentTime: string) => ({
  lastAttemptTime: '2025-06-01T12:00:00Z',
  currentTime,
  retryDelaySeconds: 60,
  attemptCount: 1,
  jitterEnabled: false,
});
export const before = entityAt('2025-06-01T12:00:59Z');
export const after = entityAt('2025-06-01T12:01:00Z');

it('a member joins the server of the tests and answers', async () => {
  const scene = await stage();
  const stream = await joined(scene);
  expect(await stream.criterion('isRetryDelayElapsed', after)).toMatchObject({ matches: true });
  expect(await stream.criterion('isRetryDelayElapsed', before)).toMatchObject({ matches: false });
  expect(scene.server.faults).toEqual([]);
  expect(scene.member.state).toMatchObject({ status: 'joined', memberId: stream.memberId });
});
