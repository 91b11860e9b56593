import { describe, expect, it } from 'vitest';
import { replayAudit } from './audit.ts';
import { eraseEvent } from './audit-erase.ts';
import { type AuditEntry, type AuditEvent, decisionEntry, policyEntry } from './audit-events.ts';
import { decide, type Facts } from '../decide.ts';
import { definePolicy } from '../policy/policy.ts';

const policy = definePolicy({ maxAttempts: 3, base: '1s', jitter: 'full' });
const subject = { category: 'c', operation: 'o', correlationId: 'Eva' };
const named: Partial<Facts> = { failure: { class: 'transient', message: 'No Eva here' } };

/** A trail as it comes back from a sink. */
class Written {
  readonly events: AuditEvent[] = [];
  #sequence = 0;
  readonly #instance: string;

  constructor(instance = 'one') {
    this.#instance = instance;
  }

  add(entry: AuditEntry): this {
    const place = { instance: this.#instance, run: 5, sequence: ++this.#sequence };
    const redrive = { ...place, ...entry.redrive };
    const event = { ...entry, timestamp: '2025-01-01T00:00:00.000Z', redrive };
    this.events.push(JSON.parse(JSON.stringify(event)) as AuditEvent);
    return this;
  }

  decided(attempt: number, by = policy, facts: Partial<Facts> = {}): this {
    const all: Facts = { attempt, failure: { class: 'transient' }, seed: 3, key: 'k', ...facts };
    return this.add(decisionEntry(subject, { policy: by, facts: all, decision: decide(by, all) }));
  }
}

describe('replaying a trail', () => {
  it('finds every decision the same in one that nobody touched', async () => {
    const { events } = new Written().add(policyEntry(policy)).decided(1).decided(2).decided(3);
    expect(await replayAudit(events)).toEqual({
      events: 4,
      checked: 3,
      same: 3,
      different: 0,
      differing: [],
      unknownPolicy: 0,
      unknownPolicies: [],
      wrongPolicies: [],
      unreadable: 0,
      missing: 0,
      gaps: [],
      twins: 0,
      dropped: 0,
      erased: 0,
    });
  });

  it('takes erased events, counts them, and makes their decisions again', async () => {
    const { events } = new Written().add(policyEntry(policy)).decided(1, policy, named).decided(2);
    events[1] = eraseEvent(events[1]!, 0);
    expect(events[1]).toMatchObject({ exception_message: null, correlation_id: null });
    expect(JSON.stringify(events[1])).not.toContain('Eva');
    expect(await replayAudit(events)).toMatchObject({ same: 2, different: 0, erased: 1 });
  });

  it.each<[string, (event: AuditEvent) => void, string[]]>([
    ['the delay was changed', (event) => set(event, 'delay_seconds', 9), ['delay_seconds']],
    ['a fact was changed', ({ redrive }) => set(redrive, 'seed', 4), ['decision.delay_ms']],
    ['a text was written', (event) => set(event, 'exception_message', 'x'), ['exception_message']],
  ])('finds an erased event in which %s afterwards', async (_, tamper, fields) => {
    const { events } = new Written().add(policyEntry(policy)).decided(1, policy, named);
    events[1] = eraseEvent(events[1]!, 0);
    tamper(events[1]);
    const { different, differing } = await replayAudit(events);
    expect(different).toBe(1);
    expect(differing[0]?.fields).toEqual(expect.arrayContaining(fields));
  });

  it.each<[string, (event: AuditEvent) => void, string[]]>([
    ['the delay', ({ redrive }) => set(redrive?.decision, 'delay_ms', 5), ['decision.delay_ms']],
    ['the number in the event', (event) => set(event, 'attempt_number', 9), ['attempt_number']],
    ['the delay in the event', (event) => set(event, 'delay_seconds', 9), ['delay_seconds']],
    ['what it says', (event) => set(event, 'event_type', 'retry_succeeded'), ['event_type']],
    ['the seed', ({ redrive }) => set(redrive, 'seed', 4), ['decision.delay_ms', 'delay_seconds']],
    ['the key', ({ redrive }) => set(redrive, 'key', 'x'), ['decision.delay_ms', 'delay_seconds']],
    [
      'the facts',
      ({ redrive }) => set(redrive?.facts, 'failure', { class: 'business' }),
      ['decision.action', 'decision.reason', 'decision.delay_ms', 'decision.next_attempt'],
    ],
    ['a field that was added', ({ redrive }) => set(redrive?.decision, 'x', 1), ['decision.x']],
  ])('finds an event in which %s was changed', async (_, tamper, fields) => {
    const { events } = new Written().add(policyEntry(policy)).decided(1).decided(2);
    tamper(events[1]!);
    const { same, different, differing } = await replayAudit(events);
    expect({ same, different }).toEqual({ same: 1, different: 1 });
    expect(differing[0]?.fields).toEqual(expect.arrayContaining(fields));
    expect(differing[0]?.event).toBe(events[1]);
  });

  it('gives both decisions of one that comes out otherwise', async () => {
    const { events } = new Written().add(policyEntry(policy)).decided(3);
    set(events[1]!.redrive?.decision, 'max_attempts', 9);
    const [difference] = (await replayAudit(events)).differing;
    expect(difference?.written).toMatchObject({ action: 'giveUp', maxAttempts: 9 });
    expect(difference?.decided).toMatchObject({ action: 'giveUp', maxAttempts: 3 });
  });

  it('waits for a policy that comes later, from another instance', async () => {
    const one = new Written('one').decided(1).decided(2);
    const two = new Written('two').add(policyEntry(policy));
    const report = await replayAudit([...one.events, ...two.events]);
    expect(report).toMatchObject({ checked: 2, same: 2, unknownPolicy: 0 });
  });

  it('holds no more than ten thousand decisions for a policy, and counts the others', async () => {
    const { events } = new Written().decided(1);
    function* many() {
      for (let n = 0; n < 10_003; n++) yield events[0];
      yield* new Written('two').add(policyEntry(policy)).events;
    }
    const report = await replayAudit(many());
    expect(report).toMatchObject({ checked: 10_000, same: 10_000, unknownPolicy: 3 });
    expect(report.unknownPolicies).toEqual([policy.fingerprint]);
  });

  it('knows the newest ten thousand policies, and counts what it cannot check any more', async () => {
    const trail = new Written().add(policyEntry(policy));
    for (let base = 1; base <= 10_000; base++) trail.add(policyEntry(definePolicy({ base })));
    const last = definePolicy({ base: 10_000 });
    const { events } = trail.decided(1).decided(1, last);
    expect(await replayAudit(events)).toMatchObject({
      same: 1,
      unknownPolicies: [policy.fingerprint],
    });
  });

  it('says which policies the trail does not have, and takes them from the caller', async () => {
    const { events } = new Written().decided(1).decided(2);
    const without = await replayAudit(events);
    expect(without).toMatchObject({
      checked: 0,
      unknownPolicy: 2,
      unknownPolicies: [policy.fingerprint],
    });
    const known = await replayAudit(events, { policies: [{ maxAttempts: 3, base: '1s' }] });
    expect(known).toMatchObject({ checked: 2, same: 2, unknownPolicy: 0 });
  });

  it('does not use a policy that is not what its fingerprint says', async () => {
    const { events } = new Written().add(policyEntry(policy)).decided(1);
    set(events[0]!['definition'], 'maxAttempts', 1000);
    const report = await replayAudit(events);
    expect(report).toMatchObject({ checked: 0, unknownPolicy: 1 });
    expect(report.wrongPolicies).toEqual([policy.fingerprint]);
    set(events[0]!, 'definition', { maxAttempts: -1 });
    expect((await replayAudit(events)).wrongPolicies).toEqual([policy.fingerprint]);
  });

  it('passes on what is no fault of a policy', async () => {
    const definition = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new RangeError('the file is broken');
        },
      },
    );
    const broken = { ...policyEntry(policy), timestamp: '', definition };
    await expect(replayAudit([broken])).rejects.toThrow('the file is broken');
  });

  it('lists only the first policies that are wrong or unknown, and counts what they decided', async () => {
    const trail = new Written();
    for (const base of [1, 2, 3]) {
      trail.add(policyEntry(definePolicy({ base }))).decided(1, definePolicy({ base }));
    }
    for (const one of trail.events) if ('definition' in one) set(one, 'definition', {});
    const report = await replayAudit(trail.events, { maxListed: 2 });
    expect(report.unknownPolicy).toBe(3);
    expect(report.wrongPolicies).toHaveLength(2);
    expect(report.unknownPolicies).toHaveLength(2);
  });

  it('takes numbers without a run for those of one run', async () => {
    const { events } = new Written().add(policyEntry(policy)).decided(1).decided(2);
    for (const { redrive } of events) set(redrive, 'run', null);
    expect(await replayAudit(events)).toMatchObject({ same: 2, missing: 0, twins: 0 });
  });

  it('decides again what was decided about no failure at all', async () => {
    const odd = { failure: undefined } as unknown as Partial<Facts>;
    const { events } = new Written().add(policyEntry(policy)).decided(1, policy, odd);
    expect(await replayAudit(events)).toMatchObject({ checked: 1, same: 1 });
  });

  it('shows what is missing, instance by instance, and what is there twice', async () => {
    const one = new Written('one').decided(1).decided(2).decided(1).decided(2).decided(1).events;
    const two = new Written('two').add(policyEntry(policy)).decided(1).events;
    const trail = [one[0], two[0], one[4], one[1], two[1], two[1]];
    expect(await replayAudit(trail)).toMatchObject({
      missing: 2,
      gaps: [{ instance: 'one', run: 5, from: 3, to: 4 }],
      twins: 1,
    });
  });

  it('takes a trail that begins in the middle, and one that begins again after a restart', async () => {
    const { events } = new Written().add(policyEntry(policy)).decided(1).decided(2);
    const again = structuredClone(events);
    for (const { redrive } of again) set(redrive, 'run', 6);
    const report = await replayAudit([...events.slice(1), ...again]);
    expect(report).toMatchObject({ missing: 0, twins: 0, same: 4 });
  });

  it('adds up what the writers said they dropped', async () => {
    const { events } = new Written()
      .add({ event_type: 'events_dropped', count: 3 })
      .add({ event_type: 'events_dropped', count: 4 })
      .add({ event_type: 'events_dropped', count: 'odd' });
    expect(await replayAudit(events)).toMatchObject({ dropped: 7 });
  });

  it('passes over what decided nothing, and counts what cannot be read', async () => {
    const half = new Written().decided(1).events[0]!;
    delete (half.redrive as { facts?: unknown }).facts;
    const trail = [null, 'text', {}, half, { event_type: 'operator_action', action: 'pause' }];
    expect(await replayAudit(trail)).toMatchObject({ events: 5, unreadable: 4, checked: 0 });
    const strict = { event_type: 'retry_attempt', timestamp: '', attempt_number: 1 };
    expect(await replayAudit([strict])).toMatchObject({ unreadable: 0, checked: 0 });
  });

  it('lists only the first differences and gaps, and counts them all', async () => {
    const trail = new Written().add(policyEntry(policy));
    for (let n = 0; n < 20; n++) trail.decided(1).add({ event_type: 'other' });
    const events = trail.events.filter(({ event_type: type }) => type !== 'other');
    for (const { redrive } of events) set(redrive?.decision, 'attempt', 7);
    const report = await replayAudit(events, { maxListed: 2 });
    expect(report).toMatchObject({ different: 20, missing: 19 });
    expect(report.differing).toHaveLength(2);
    expect(report.gaps).toHaveLength(2);
  });

  it('reads what comes piece by piece', async () => {
    async function* pieces() {
      yield* new Written().add(policyEntry(policy)).decided(1).events;
    }
    expect(await replayAudit(pieces())).toMatchObject({ events: 2, same: 1 });
  });

  it('knows the wait that was set by somebody else', async () => {
    const facts: Facts = { attempt: 1, failure: { class: 'transient' } };
    const decision = decide(policy, facts);
    const entry = decisionEntry(subject, { policy, facts, decision }, {}, 60_000);
    const { events } = new Written().add(policyEntry(policy)).add(entry);
    expect(await replayAudit(events)).toMatchObject({ same: 1 });
    set(events[1]!, 'delay_seconds', 61);
    expect(await replayAudit(events)).toMatchObject({ different: 1 });
  });
});

function set(target: unknown, name: string, value: unknown): void {
  if (target !== undefined) (target as Record<string, unknown>)[name] = value;
}
