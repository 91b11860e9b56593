import type { Publication, Published } from '@redrive/engine';
import { createTestBroker } from '@redrive/engine/testing';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { observedBroker } from './observed-broker.ts';
import { Tracing } from '../trace/tracing.ts';

function brokerOf() {
  const clock = virtualClock();
  const broker = createTestBroker();
  const told: unknown[][] = [];
  const tell =
    (what: string) =>
    (...facts: unknown[]): void =>
      void told.push([what, ...facts]);
  const metrics = {
    publishing: tell('publishing'),
    published: tell('published'),
    executed: tell('executed'),
  };
  const observed = observedBroker(broker, { metrics, tracing: new Tracing(), clock });
  return { clock, broker, observed, told };
}

const message = (address: string, headers: Publication['headers'] = {}): Publication => ({
  address,
  payload: new Uint8Array(),
  headers: { 'x-retry-scheduler': 'true', 'x-message-id': 'm-1', 'x-retry-count': 1, ...headers },
});
const failure = { class: 'transient' } as const;
const options = { timeoutMs: 1000 };

describe('publishing', () => {
  it('is measured from the call to each answer', async () => {
    const { clock, broker, observed, told } = brokerOf();
    broker.answer = ({ address }) =>
      new Promise((resolve) => {
        const confirm = () => resolve({ outcome: 'confirmed' });
        clock.setTimer(confirm, address === 'slow' ? 500 : 250);
      });
    const answers = observed.publish([message('slow'), message('fast')], options);
    await clock.advance('1s');
    expect(await Promise.all(answers)).toEqual([
      { outcome: 'confirmed' },
      { outcome: 'confirmed' },
    ]);
    expect(told).toEqual([
      ['publishing', 2],
      ['published', 'confirmed', 0.25],
      ['executed', 'queue:fast', true],
      ['published', 'confirmed', 0.5],
      ['executed', 'queue:slow', true],
    ]);
  });

  it.each<[Published, boolean]>([
    [{ outcome: 'unroutable' }, true],
    [{ outcome: 'refused', failure }, true],
    [{ outcome: 'impossible', failure }, true],
    [{ outcome: 'unknown', failure }, true],
    [{ outcome: 'lost', failure }, true],
    [{ outcome: 'away', failure }, false],
  ])(
    'that ends as %j is a failed execution, unless nothing was sent',
    async (answer, isExecuted) => {
      const { broker, observed, told } = brokerOf();
      broker.answer = () => answer;
      const [published] = observed.publish([message('a')], options);
      expect(await published).toEqual(answer);
      expect(told[1]).toEqual(['published', answer.outcome, 0]);
      expect(told.slice(2)).toEqual(isExecuted ? [['executed', 'queue:a', false]] : []);
    },
  );

  it('of what is no task, such as a review message, is no execution', async () => {
    const { observed, told } = brokerOf();
    await observed.publish(
      [{ address: 'review', payload: new Uint8Array(), headers: {} }],
      options,
    )[0];
    expect(told).toEqual([
      ['publishing', 1],
      ['published', 'confirmed', 0],
    ]);
  });

  it('that a faulty broker leaves without an answer counts as unknown', async () => {
    const { broker, observed, told } = brokerOf();
    broker.answer = () => Promise.reject(new Error('a fault of its own'));
    await expect(observed.publish([message('a')], options)[0]).rejects.toThrow('of its own');
    broker.publish = () => [];
    expect(observed.publish([message('b')], options)).toEqual([]);
    expect(told.filter(([what]) => what === 'published')).toEqual([
      ['published', 'unknown', 0],
      ['published', 'unknown', 0],
    ]);
  });
});

it('all else is the broker itself, as it is at that moment', async () => {
  const { broker, observed } = brokerOf();
  expect([observed.kind, observed.capabilities]).toEqual(['queue', broker.capabilities]);
  let changes = 0;
  const end = observed.watch(() => (changes += 1));
  broker.isReady = false;
  expect([observed.isReady, changes]).toEqual([false, 1]);
  end();
  broker.isReady = true;
  expect([observed.isReady, changes]).toEqual([true, 1]);
  await observed.open();
  await observed.close();
});
