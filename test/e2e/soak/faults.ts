/** What is done to the services while they work. Each goes on until the time is over. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import amqp, { type ConfirmChannel } from 'amqplib';
import { Consumers } from '../service/storm/consumers.ts';
import type { Journal, TroubleKind } from '../service/storm/journal.ts';
import { confirmChannel, publish } from '../service/storm/peer.ts';
import { FIRST_VANISHING, VANISHING } from '../service/storm/plans.ts';
import { Producer } from '../service/storm/producer.ts';
import type { Relay } from '../service/storm/relay.ts';
import type { Stage } from '../service/storm/stage.ts';
import { troubleServers } from '../service/storm/troubles.ts';
import type { Receiver } from './receiver.ts';
import type { Time } from './time.ts';

const KILL_EVERY_MS = 15_000;
/** A round of trouble for the servers takes about a minute. */
const ROUND_MS = 50_000;
const LONGEST_OUTAGE_MS = 30_000;
const AGAIN_MS = 100;
const VANISHING_PER_SECOND = 5;
const HUGE_BYTES = 17 * 2 ** 20;
const RETRY_QUEUE = 'retry.scheduled';
const OVERSIZED_QUEUE = 'redrive.oversized';

/** In turn, so that there is always one that works. */
export async function killInTurn(
  relays: readonly Relay[],
  journal: Journal,
  time: Time,
): Promise<void> {
  for (let turn = 0; ; turn++) {
    await time.sleep(KILL_EVERY_MS);
    if (time.isOver) return;
    await relays[turn % relays.length]!.replace(journal);
  }
}

/** Early, so that the last one lives long enough for its memory to be looked at. */
export async function killEarly(relay: Relay, journal: Journal, time: Time): Promise<void> {
  for (const share of [0.1, 0.2]) {
    await time.until(share);
    await relay.replace(journal);
  }
}

/** Between two rounds of faults: a broker that is hardly ever there proves little. */
const CALM_MS = 30_000;
const cuts: readonly TroubleKind[] = ['broker cut', 'confirm lost', 'database cut', 'commit cut'];

export async function troubleAll(
  stage: Stage,
  journal: Journal,
  time: Time,
  wanted: { cuts: boolean; restarts: boolean },
): Promise<void> {
  const isWanted = (what: TroubleKind) => (cuts.includes(what) ? wanted.cuts : wanted.restarts);
  do {
    await troubleServers(stage, journal, isWanted);
    await time.sleep(CALM_MS);
  } while (time.leftMs > ROUND_MS);
}

export async function makeOutage(receiver: Receiver, time: Time): Promise<void> {
  await time.until(0.3);
  receiver.isDown = true;
  await sleep(Math.min(LONGEST_OUTAGE_MS, time.lengthMs / 10));
  receiver.isDown = false;
}

/** Messages for a queue that is deleted in the midst of it. */
export async function deleteQueue(url: string, journal: Journal, time: Time): Promise<void> {
  const producer = new Producer(url, journal, FIRST_VANISHING);
  const consumers = new Consumers(url, journal, VANISHING);
  await consumers.start();
  await producer.start();
  const sending = producer.produce(VANISHING_PER_SECOND, time.leftMs);
  await time.until(0.5);
  // A consumer that connects again would bring the queue back, and then leave it.
  consumers.declares = false;
  // Only while it is empty: what it holds would be lost with it, and nobody could tell.
  await again(url, (channel) => channel.deleteQueue(VANISHING, { ifEmpty: true }));
  await consumers[Symbol.asyncDispose]();
  await sending;
  await producer[Symbol.asyncDispose]();
}

/** Answers its id once the broker has it. */
export async function sendHuge(url: string, time: Time): Promise<string> {
  await time.until(0.4);
  const id = randomUUID();
  const fields = { message_id: id, original_queue: VANISHING, retry_count: 0 };
  const start = JSON.stringify({ ...fields, original_payload: '' }).slice(0, -2);
  const body = Buffer.from(`${start}${'QUFB'.repeat(HUGE_BYTES / 4)}"}`);
  await again(url, async (channel) => {
    const isThere = await publish(channel, RETRY_QUEUE, body, { contentType: 'application/json' });
    if (!isThere) throw new Error('The broker did not take it.');
  });
  return id;
}

/** Takes the huge ones out of the queue that they were put into. Answers what is wrong. */
export async function collectHuge(url: string, ids: readonly string[]): Promise<string[]> {
  const found = new Map<string, number>();
  await again(url, async (channel) => {
    for (;;) {
      const message = await channel.get(OVERSIZED_QUEUE);
      if (!message) return;
      const id = ids.find((one) => message.content.subarray(0, 500).includes(one)) ?? 'unknown';
      if (message.content.length >= HUGE_BYTES) found.set(id, (found.get(id) ?? 0) + 1);
      channel.ack(message);
    }
  });
  return ids
    .filter((id) => !found.has(id))
    .map((id) => `${id} (huge) is not in ${OVERSIZED_QUEUE}`);
}

/** Whatever the broker is going through at present. */
async function again(
  url: string,
  work: (channel: ConfirmChannel) => Promise<unknown>,
): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      const connection = await amqp.connect(url, { timeout: 5000 });
      connection.on('error', () => undefined);
      try {
        await work(await confirmChannel(connection));
        return;
      } finally {
        await connection.close().catch(() => undefined);
      }
    } catch (error) {
      if (tries === 600) throw error;
      await sleep(AGAIN_MS);
    }
  }
}
