import { deepEqual, equal } from 'node:assert/strict';
import type {
  Broker,
  BrokerCapabilities,
  ConsumeLimits,
  Consumer,
  Publication,
  Published,
  PublishOptions,
  Received,
} from '../../ports/broker.ts';
import { bytes } from '../fixtures.ts';
import type { CaseTable, Until } from '../suite.ts';

export interface OpenedBroker {
  broker: Broker;
  /** The name of a queue that exists, is empty, and can be published to and consumed. Another one each time. */
  queue: () => Promise<string>;
  /** An address at which nobody is. */
  nowhere: string;
  close(): Promise<void>;
}

type Stage = OpenedBroker & { until: Until };

/** What a broker can or cannot do. */
type BrokerSkill = Exclude<keyof BrokerCapabilities, 'maxMessageBytes'>;

export type BrokerCases = CaseTable<Stage, BrokerSkill>;

export const LIMIT: PublishOptions = { timeoutMs: 20_000 };
export const unlimited: ConsumeLimits = { maxMessages: 10_000, maxBytes: 1 << 30 };

export function message(address: string, text: string): Publication {
  return { address, payload: bytes(text), headers: {} };
}

export function numbered(address: string, count: number): Publication[] {
  return Array.from({ length: count }, (_, i) => message(address, String(i)));
}

export function textOf({ payload }: Received): string {
  return new TextDecoder().decode(payload);
}

export function publish(broker: Broker, messages: readonly Publication[]): Promise<Published[]> {
  return Promise.all(broker.publish(messages, LIMIT));
}

export async function confirm(broker: Broker, messages: readonly Publication[]): Promise<void> {
  const outcomes = await publish(broker, messages);
  deepEqual(
    outcomes,
    messages.map(() => ({ outcome: 'confirmed' })),
  );
}

export async function listen(
  broker: Broker,
  source: string,
  limits: ConsumeLimits = unlimited,
): Promise<{ got: Received[]; consumer: Consumer }> {
  const got: Received[] = [];
  return { got, consumer: await broker.consume(source, limits, (one) => got.push(one)) };
}

/** Takes so many messages from a queue, for good. */
export async function receive(stage: Stage, source: string, count: number): Promise<Received[]> {
  const { got, consumer } = await listen(stage.broker, source);
  await stage.until(`${count} messages`, () => got.length >= count);
  equal(got.length, count);
  await consumer.ack(got);
  await consumer.stop();
  return got;
}

/** When this is over, whatever was on its way is over too. */
export async function turnAround(stage: Stage): Promise<void> {
  const other = await stage.queue();
  await confirm(stage.broker, [message(other, 'there and back')]);
  await receive(stage, other, 1);
}

export async function expectEmpty(stage: Stage, source: string): Promise<void> {
  const { got, consumer } = await listen(stage.broker, source);
  await turnAround(stage);
  await consumer.stop();
  deepEqual(got, []);
}
