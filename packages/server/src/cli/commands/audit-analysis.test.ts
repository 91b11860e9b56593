import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type AuditEvent,
  auditEntry,
  decide,
  decisionEntry,
  definePolicy,
  type Policy,
  policyEntry,
} from 'redrive';
import { describe, expect, it } from 'vitest';
import { call, id, stage, tempFolder } from '../stage.test.ts';

const START_MS = Date.UTC(2026, 0, 1);
const transient = { class: 'transient', names: ['ResetError'] } as const;

interface Made {
  category: string;
  policy: Policy;
  work?: number;
  /** The attempt that works; 0: none does. */
  worksAt: number;
  successes?: boolean;
}

/** Pieces of work, a second apart, by what `decide` says. */
function made({ category, policy: given, work = 40, worksAt, successes }: Made): AuditEvent[] {
  const policy = definePolicy(given);
  const events: AuditEvent[] = [];
  const write = (atMs: number, entry: object) =>
    events.push({ ...entry, timestamp: new Date(atMs).toISOString() } as AuditEvent);
  write(START_MS, policyEntry(policy));
  for (let i = 0; i < work; i++) {
    let atMs = START_MS + i * 1000;
    for (let attempt = 1; ; attempt++) {
      const subject = { category, operation: 'get' };
      if (attempt === worksAt) {
        const { maxAttempts } = policy;
        const happening = { type: 'retry_succeeded', attempt, maxAttempts } as const;
        if (successes === true) write(atMs, auditEntry(subject, happening));
        break;
      }
      const facts = { attempt, failure: transient, key: `${i}` };
      const decision = decide(policy, facts);
      write(atMs, decisionEntry(subject, { policy, facts, decision }));
      if (decision.action === 'giveUp') break;
      atMs += decision.delayMs;
    }
  }
  return events;
}

function fileOf(events: readonly object[]): string {
  const folder = tempFolder();
  writeFileSync(
    join(folder, 'trail.jsonl'),
    events.map((event) => `${JSON.stringify(event)}\n`).join(''),
  );
  return folder;
}

const plain = { maxAttempts: 6, base: 100, jitter: 'none' } as const;

describe('redrive audit stats', () => {
  it('shows a table with lines of load, and says what is not known', async () => {
    const cwd = fileOf([
      ...made({ category: 'API', policy: plain, worksAt: 2 }),
      ...made({ category: 'KV\u001b[2J', policy: plain, worksAt: 1, work: 9, successes: true }),
      ...made({ category: 'NATS', policy: { ...plain, maxAttempts: 2 }, worksAt: 0, work: 10 }),
    ]);
    const { out, code } = await call('audit stats trail.jsonl', { cwd });
    expect(code).toBe(0);
    expect(out).toMatch(/^72 events from 2026-01-01 00:00:00Z to 2026-01-01 00:00:39Z \(39 s\)\n/);
    expect(out).toMatch(
      /^CATEGORY +ATTEMPTS +RETRIES +SUCCESS +RECOVERED +MEAN +\/MIN +PEAK +RETRIES OVER TIME +ERRORS$/m,
    );
    expect(out).toMatch(/^API +79 +40 +\? +100 % +2\* +40 +40 +█{24} +ResetError 40$/m);
    expect(out).toMatch(/^NATS +20 +10 +\? +0 % +2\* +10 +10 +[█▁-▇]+ +ResetError 20$/m);
    expect(out).toMatch(/^KV\\x1b\[2J +9 +0 +100 % +- +1 +0 +0/m);
    expect(out).toContain('SUCCESS ?: there is no retry_succeeded of that category');
    expect(out).toContain('MEAN *: attempts of work that failed at least once');
  });

  it('says the same as JSON, in the words of the API', async () => {
    const cwd = fileOf(made({ category: 'API', policy: plain, worksAt: 3, successes: true }));
    const { out } = await call('audit stats trail.jsonl --json', { cwd });
    expect(JSON.parse(out)).toMatchObject({
      complete: true,
      categories: [
        { category: 'API', success_rate: 1, mean_attempts: 3, recovered_within_ms: { p90: 300 } },
      ],
    });
    const cut = await call(
      'audit stats trail.jsonl --json --from 2026-01-01T00:00:10Z --to 2026-01-01T00:00:20Z',
      { cwd },
    );
    expect(JSON.parse(cut.out)).toMatchObject({ categories: [{ succeeded: 10 }] });
  });

  it('measures the trail of a server, per lane', async () => {
    const scene = await stage();
    scene.receiver.status = 503;
    await scene.redrive(['submit', scene.receiver.url, '1', '--id', id(1)]);
    await scene.event('retry');
    const [stats] = await scene.json('audit stats --by operation');
    const lane = new URL(scene.receiver.url).origin;
    expect(stats).toMatchObject({
      categories: [{ category: lane, retries: 1, waiting: 1, errors: [{ type: 'HTTP_503' }] }],
    });
    const [byCategory] = await scene.json('audit stats');
    expect(byCategory).toMatchObject({
      complete: true,
      categories: [{ category: 'durable', policy: { maxAttempts: 4 } }],
    });
    const one = await scene.redrive('audit stats --events 1');
    expect(one.out).toContain('These are the newest 1 events; --events takes more.');
  });

  it('says so where there is nothing', async () => {
    const cwd = fileOf([]);
    expect((await call('audit stats trail.jsonl', { cwd })).out).toBe('There are no events.\n');
    const other = fileOf([{ event_type: 'operator_action', timestamp: '2026-01-01T00:00:00Z' }]);
    expect((await call('audit stats trail.jsonl', { cwd: other })).out).toContain(
      'None of them is about an attempt.',
    );
    expect(await call('audit stats nowhere.jsonl', { cwd })).toMatchObject({ code: 2 });
  });

  it('tells of categories that are not shown, and of events that are missing or unreadable', async () => {
    const events = ['A', 'B', 'C'].flatMap((category) =>
      made({ category, policy: plain, worksAt: 0, work: 1 }),
    );
    const dropped = { event_type: 'events_dropped', count: 3, timestamp: '2026-01-01T00:00:00Z' };
    const cwd = fileOf([...events, dropped, { nonsense: true }]);
    const { out } = await call('audit stats trail.jsonl --limit 1', { cwd });
    expect(out).toContain('2 more categories: --limit.');
    expect(out).toContain('3 events were dropped, as the writers said themselves.');
    expect(out).toContain('1 event could not be read.');
  });
});

describe('redrive audit suggest', () => {
  it('shows a suggestion beside the present policy, both in the simulator', async () => {
    const cwd = fileOf(made({ category: 'API', policy: plain, worksAt: 4 }));
    const { out, code } = await call('audit suggest trail.jsonl', { cwd });
    expect(code).toBe(0);
    expect(out).toMatch(/^API: a change is suggested\n {2}present +6 attempts, waits from 100 ms/);
    expect(out).toMatch(/^ {2}suggested +4 attempts, waits from 700 ms/m);
    expect(out).toMatch(/^ {2}change +\{"maxAttempts":4,"base":700\}$/m);
    expect(out).toMatch(
      /^ {2}why +Attempts 2 to 3 do not help: what fails recovers after about 700 ms\.$/m,
    );
    expect(out).toContain('In the simulator: 1,000 clients, an outage of 700 ms');
    expect(out).toMatch(/^ {2}present +[▁-█ ]{32} +\d+(\.\d)? % +[\d,]+ +[\d,]+ +[\d,]+\/s/m);
    expect(out).toMatch(/^ {2}suggested +[▁-█ ]{32} +\d+(\.\d)? % +[\d,]+ +[\d,]+ +[\d,]+\/s/m);
  });

  it('says what to keep, and what is not known', async () => {
    const cwd = fileOf([
      ...made({ category: 'API', policy: plain, worksAt: 2 }),
      ...made({ category: 'KV', policy: plain, worksAt: 2, work: 3 }),
    ]);
    const { out } = await call('audit suggest trail.jsonl', { cwd });
    expect(out).toMatch(/^API: keep it as it is\n/);
    expect(out).toMatch(
      /^KV: too little is known\n[^]*Only [23] first retries are in the trail: at least 30 are needed\./m,
    );
  });

  it('says the same as JSON, one line for each category', async () => {
    const cwd = fileOf([
      ...made({ category: 'API', policy: plain, worksAt: 4 }),
      ...made({ category: 'KV', policy: plain, worksAt: 2, work: 3 }),
    ]);
    const { out } = await call('audit suggest trail.jsonl --json', { cwd });
    const [api, kv] = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(api).toMatchObject({
      category: 'API',
      verdict: 'change',
      is_measured: false,
      present: { maxAttempts: 6 },
      suggested: { maxAttempts: 4, base: 700 },
      simulated: { outage_ms: 700, present: { succeeded: 1000 }, suggested: { succeeded: 1000 } },
    });
    expect(kv).toMatchObject({ verdict: 'unknown', suggested: null, simulated: null });
  });

  it('takes one category, and knows which there are', async () => {
    const cwd = fileOf(made({ category: 'API', policy: plain, worksAt: 2 }));
    expect((await call('audit suggest trail.jsonl --category API', { cwd })).code).toBe(0);
    const { code, err } = await call('audit suggest trail.jsonl --category KV', { cwd });
    expect(code).toBe(1);
    expect(err).toContain("The trail has no category 'KV'. It has API.");
    const empty = fileOf([]);
    expect((await call('audit suggest trail.jsonl', { cwd: empty })).out).toBe(
      'There is nothing about attempts in it.\n',
    );
  });

  it('suggests from the trail of a server', async () => {
    const scene = await stage();
    scene.receiver.status = 503;
    await scene.redrive(['submit', scene.receiver.url, '1', '--id', id(1)]);
    await scene.event('retry');
    expect((await scene.redrive('audit suggest')).out).toMatch(/^durable: too little is known\n/);
  });
});
