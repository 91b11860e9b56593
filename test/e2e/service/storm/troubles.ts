/** What is done to the service and its servers while messages come and go. */
import { setTimeout as sleep } from 'node:timers/promises';
import { A_PUBLISH } from './cutter.ts';
import type { Journal, TroubleKind } from './journal.ts';
import type { Relay } from './relay.ts';
import type { Stage } from './stage.ts';

/** Statements of the store, told by a word that only they have. */
const A_SETTLE = Buffer.from('goal');
const AN_INSERT = Buffer.from('INSERT INTO');

/** A process is killed in the midst of its work: after so many deliveries. */
const lives = [500, 1500, 2500, 2500, 3000];
const LOOK_MS = 20;

/** Kills the service again and again, each time it is at work. */
export async function killAgain(relay: Relay, journal: Journal): Promise<void> {
  for (const deliveries of lives) {
    const enough = journal.receipts.length + deliveries;
    while (journal.receipts.length < enough) await sleep(LOOK_MS);
    await relay.replace(journal);
  }
}

/** Each at its second, or when the one before is over. `isWanted` leaves some out. */
export async function troubleServers(
  stage: Stage,
  journal: Journal,
  isWanted: (what: TroubleKind) => boolean = () => true,
): Promise<void> {
  const { ways, rabbitmq, postgres } = stage;
  const { broker, database, brokerAnswers, databaseAnswers } = ways;
  const during =
    (...args: Parameters<Journal['trouble']>) =>
    async () => {
      if (isWanted(args[0])) await journal.trouble(...args);
    };
  /** Its moment is when it happens, not when it is asked for. */
  const when = (what: TroubleKind, happens: () => unknown) => async () => {
    if (!isWanted(what)) return;
    await happens();
    await journal.trouble(what, async () => undefined);
  };
  const steps: [second: number, make: () => Promise<void>][] = [
    [3, when('confirm lost', () => brokerAnswers.cutAnswer(A_PUBLISH))],
    [4, when('commit cut', () => databaseAnswers.cutAnswer(A_SETTLE))],
    [6, during('broker restarted', () => rabbitmq.restart())],
    [16, when('commit cut', () => databaseAnswers.cutAnswer(AN_INSERT))],
    [18, during('database restarted', () => postgres.restart())],
    [21, when('confirm lost', () => brokerAnswers.cutAnswer(A_PUBLISH))],
    [23, when('broker cut', () => broker.cutAfter(20_000))],
    [26, during('broker killed', () => crash(rabbitmq))],
    [38, during('database killed', () => crash(postgres))],
    [41, when('database cut', () => database.cutAfter(5000))],
    [43, when('commit cut', () => databaseAnswers.cutAnswer(A_SETTLE))],
    [45, when('confirm lost', () => brokerAnswers.cutAnswer(A_PUBLISH))],
    [47, when('broker cut', () => broker.cut())],
    [49, when('database cut', () => database.cut())],
  ];
  const startMs = performance.now();
  for (const [second, make] of steps) {
    await sleep(Math.max(0, startMs + second * 1000 - performance.now()));
    await make();
  }
}

async function crash(server: { kill9(): Promise<void>; start(): Promise<void> }): Promise<void> {
  await server.kill9();
  await server.start();
}
