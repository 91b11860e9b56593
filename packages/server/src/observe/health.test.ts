import { createEngine, EngineError, type EngineStats } from '@redrive/engine';
import { memory } from '@redrive/engine/memory';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { type BrokerWithState, HealthChecks } from './health.ts';

const calm: EngineStats = {
  running: 0,
  held: 0,
  unsettled: 0,
  auditDropped: 0,
  outboxStuck: 0,
  seed: 0,
  sources: [{ source: 'retry.scheduled', state: 'consuming' }],
};

interface Options {
  stats?: Partial<EngineStats>;
  broker?: BrokerWithState;
  nats?: BrokerWithState;
}

function healthOf(options: Options = {}) {
  const clock = virtualClock();
  const health = new HealthChecks({ clock });
  const store = { isAway: undefined as Error | undefined, pings: 0, hangs: false };
  const engine = {
    stats: () => ({ ...calm, ...options.stats }),
    get: async () => {
      store.pings += 1;
      if (store.hangs) await new Promise<never>(() => {});
      if (store.isAway) throw store.isAway;
      return undefined;
    },
  };
  const { broker: rabbitmq, nats } = options;
  health.watch(engine, { ...(rabbitmq ? { rabbitmq } : {}), ...(nats ? { nats } : {}) });
  health.started();
  const wrong = async () => {
    const { ready, checks } = await health.ready();
    return { ready, told: checks.filter(({ detail }) => detail !== undefined) };
  };
  return { clock, health, store, wrong };
}

describe('an instance that is well', () => {
  it('is ready, and names what was looked at', async () => {
    const { health } = healthOf({ broker: { state: { state: 'connected' } } });
    expect(await health.ready()).toEqual({
      ready: true,
      checks: ['started', 'store', 'broker', 'sources', 'outbox', 'audit', 'clock', 'inbox'].map(
        (name) => ({
          name,
          ok: true,
        }),
      ),
    });
  });

  it('without a broker is not asked for one', async () => {
    const { health } = healthOf();
    const { ready, checks } = await health.ready();
    expect(ready).toBe(true);
    expect(checks.map(({ name }) => name)).not.toContain('broker');
  });

  it('is found well on a real engine', async () => {
    const clock = virtualClock();
    const engine = createEngine({ store: memory({ clock }), clock });
    const health = new HealthChecks({ clock });
    health.watch(engine);
    await engine.start();
    health.started();
    expect(await health.ready()).toMatchObject({ ready: true });
    await engine.stop();
    await clock.advance('1s');
    expect(await health.ready()).toMatchObject({ ready: false });
  });
});

describe('an instance is not ready', () => {
  it('before it has started, and once it stops', async () => {
    const health = new HealthChecks({ clock: virtualClock() });
    const before = await health.ready();
    expect(before.ready).toBe(false);
    expect(before.checks.slice(0, 2)).toEqual([
      { name: 'started', ok: false, detail: expect.stringContaining('not started yet') },
      { name: 'store', ok: false, detail: 'There is no store yet.' },
    ]);
    const { health: other, wrong } = healthOf();
    other.stopping();
    other.started();
    expect(await wrong()).toEqual({
      ready: false,
      told: [{ name: 'started', ok: false, detail: expect.stringContaining('It stops') }],
    });
  });

  it('while its store is away, and says why, without credentials', async () => {
    const { store, wrong } = healthOf();
    store.isAway = new EngineError('STORE_UNAVAILABLE', 'no postgres://me:pw@db');
    expect(await wrong()).toEqual({
      ready: false,
      told: [{ name: 'store', ok: false, detail: 'no postgres://***@db' }],
    });
  });

  it('while its store gives no answer within two seconds', async () => {
    const { clock, store, wrong } = healthOf();
    store.hangs = true;
    const asked = wrong();
    await clock.advance('2s');
    expect(await asked).toEqual({
      ready: false,
      told: [{ name: 'store', ok: false, detail: expect.stringContaining('within 2000 ms') }],
    });
  });

  it.each([
    [
      { state: 'connecting', why: 'amqp://a:b@c refused' } as const,
      'Not connected: amqp://***@c refused',
    ],
    [
      {
        state: 'connecting',
        why: 'RabbitMQ refuses the user or the password in the URL.',
      } as const,
      'Not connected: RabbitMQ refuses the user or the password in RABBITMQ_URL.',
    ],
    [{ state: 'blocked' } as const, 'The connection is blocked'],
  ])('while its broker is %j', async (state, detail) => {
    const { wrong } = healthOf({ broker: { state } });
    expect(await wrong()).toEqual({ ready: false, told: [{ name: 'broker', ok: false, detail }] });
  });

  it('while one of two brokers is away, which it names', async () => {
    const connected = { state: { state: 'connected' } } as const;
    const nats = { state: { state: 'blocked', why: 'JetStream does not answer' } } as const;
    const { wrong } = healthOf({ broker: connected, nats });
    const detail = 'The connection is blocked: JetStream does not answer';
    expect(await wrong()).toEqual({ ready: false, told: [{ name: 'nats', ok: false, detail }] });
  });

  it('is ready where its broker misses something, and says what', async () => {
    const why = 'The exchange amqp://me:secret@host/dlx is not there and could not be made.';
    const { wrong } = healthOf({ broker: { state: { state: 'connected', why } } });
    const detail = expect.stringMatching(
      /^The exchange (?!.*secret).*could not be made\.$/,
    ) as string;
    expect(await wrong()).toEqual({ ready: true, told: [{ name: 'broker', ok: true, detail }] });
  });
});

describe('an instance is ready all the same, and warns', () => {
  it('when a source has stopped, since requests are still served', async () => {
    const sources: EngineStats['sources'] = [
      { source: 'a', state: 'stopped', why: 'A message of amqp://me:pw@host is too large.' },
      { source: 'b', state: 'stopped' },
      { source: 'c', state: 'waiting' },
      { source: 'd', state: 'consuming', why: 'A message has no place.' },
    ];
    const { wrong } = healthOf({ stats: { sources } });
    const detail =
      'a: A message of amqp://***@host is too large. b: it stopped. d: A message has no place.';
    expect(await wrong()).toEqual({ ready: true, told: [{ name: 'sources', ok: true, detail }] });
  });

  it('when the clock of the host is more than a second from that of the database', async () => {
    const { wrong } = healthOf({ stats: { clockSkewMs: -1500 } });
    const detail = expect.stringMatching(/1\.5 s behind the clock of the database/) as string;
    expect(await wrong()).toEqual({ ready: true, told: [{ name: 'clock', ok: true, detail }] });
    expect((await healthOf({ stats: { clockSkewMs: 900 } }).wrong()).told).toEqual([]);
  });

  it('when review messages are stuck or events of the trail were lost', async () => {
    const { wrong } = healthOf({ stats: { outboxStuck: 3, auditDropped: 2 } });
    expect(await wrong()).toEqual({
      ready: true,
      told: [
        { name: 'outbox', ok: true, detail: expect.stringMatching(/^3 review messages/) },
        { name: 'audit', ok: true, detail: expect.stringMatching(/^2 events/) },
      ],
    });
  });

  it('while the inbox is full or filling up', async () => {
    const { clock, health, wrong } = healthOf();
    health.engineEvent({ type: 'accepted', id: 'm', lane: 'l' });
    health.engineEvent({ type: 'inboxFilling', open: 8, maxItems: 10 });
    expect((await wrong()).told[0]?.detail).toMatch(
      /^It is filling up: 8 open items, 10 is the limit/,
    );
    health.engineEvent({ type: 'inboxFull', open: 10, maxItems: 10 });
    expect(await wrong()).toMatchObject({ ready: true, told: [{ name: 'inbox', ok: true }] });
    await clock.advance('3m');
    expect((await wrong()).told).toHaveLength(1);
    await clock.advance(1);
    expect((await wrong()).told).toEqual([]);
  });
});

describe('the store', () => {
  it('is asked once for all who ask at the same time, and at most once a second', async () => {
    const { clock, health, store } = healthOf();
    await Promise.all([health.ready(), health.ready(), health.ready()]);
    await clock.advance(999);
    await health.ready();
    expect(store.pings).toBe(1);
    await clock.advance(1);
    await health.ready();
    expect(store.pings).toBe(2);
  });
});

it('is not ready while the store answers and takes nothing, and says so until a write works', async () => {
  const health = new HealthChecks({ clock: virtualClock() });
  health.watch({ get: async () => undefined, stats: () => calm });
  health.started();
  const store = async () => (await health.ready()).checks.find(({ name }) => name === 'store');
  health.stored('claim', new EngineError('STORE_READ_ONLY', 'The database is read-only.'));
  expect(await store()).toMatchObject({ ok: false, detail: 'The database is read-only.' });
  health.stored('get', undefined);
  health.stored('settle', new EngineError('STORE_FULL', 'No room.'));
  expect(await store()).toMatchObject({ ok: false, detail: 'No room.' });
  health.stored('settle', undefined);
  expect(await store()).toMatchObject({ ok: true });
});
