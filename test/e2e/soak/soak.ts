/** The services of the soak, what they are given and what is done to them, and the account at the end. */
import type { Account, Evidence } from '../service/storm/account.ts';
import { allItems } from '../service/storm/evidence.ts';
import { accountHttp, type FailedAttempt, repeatedIds } from '../service/storm/http-account.ts';
import type { Instance } from '../service/storm/instance.ts';
import { Journal } from '../service/storm/journal.ts';
import { Relay } from '../service/storm/relay.ts';
import { duplicates, type Outcome, Scene } from '../service/storm/scene.ts';
import { TemporaryFolder } from '../service/redrive-process.ts';
import {
  collectHuge,
  deleteQueue,
  killEarly,
  killInTurn,
  makeOutage,
  sendHuge,
  troubleAll,
} from './faults.ts';
import { HttpLoad } from './http-load.ts';
import { Memory, mib, type Verdict } from './memory.ts';
import type { Options } from './options.ts';
import { Receiver } from './receiver.ts';
import { Time } from './time.ts';

const LANES = 10_000;
const FEW_LANES = 10;
const MOST_HTTP_PER_SECOND = 200;
const FILE_PER_SECOND = 20;
const LOAD_PIECE_MS = 5000;
const SAMPLE_MS = 5000;
const SAY_MS = 10_000;
/** After the end of the time, for the fault that is just being made. */
const TROUBLE_PATIENCE_MS = 120_000;
/** A lane whose breaker has opened again and again works off what has piled up. */
const SETTLE_MS = 300_000;

/** Everything that was promised and did not hold. */
export async function soak(options: Options, say: (line: string) => void): Promise<string[]> {
  say('starting PostgreSQL, RabbitMQ and four services');
  await using scene = await Scene.open();
  await using receiver = await Receiver.start();
  using folder = new TemporaryFolder();
  const { stage, journal, producer } = scene;
  const fileJournal = new Journal();
  const relays = [await stage.start(), await stage.start(), await stage.start()].map(
    (service) => new Relay(stage, service),
  );
  const startOnFile = () => stage.startOnFile(folder.path);
  const file = new Relay(stage, await startOnFile(), startOnFile);
  for (const { service } of [...relays, file]) await service.ready();
  const witness = relays.at(-1)!;
  receiver.isFlaky = options.with.has('flaky');

  const time = new Time(options.minutes * 60_000);
  const lanes = options.with.has('lanes') ? LANES : FEW_LANES;
  const http = new HttpLoad(receiver, lanes, () => anyOf(relays).service.url);
  const ofFile = new HttpLoad(receiver, FEW_LANES, () => file.service.url);
  const memory = new Memory();
  const huge: string[] = [];
  const when = (fault: Parameters<typeof options.with.has>[0], make: () => Promise<unknown>) =>
    options.with.has(fault) ? make() : undefined;
  let isTroubled = true;
  const lastTrouble = () => journal.troubles.at(-1)?.what ?? 'none';
  const troubles = Promise.all([
    when('kills', () => killInTurn(relays.slice(0, -1), journal, time)),
    when('kills', () => killEarly(file, fileJournal, time).then(() => memory.forget('file'))),
    when('outage', () => makeOutage(receiver, time)),
    when('queue', () => deleteQueue(stage.rabbitmq.url, journal, time)),
    when('huge', async () => huge.push(await sendHuge(stage.rabbitmq.url, time))),
    troubleAll(stage, journal, time, {
      cuts: options.with.has('cuts'),
      restarts: options.with.has('restarts'),
    }),
  ]).finally(() => (isTroubled = false));
  // Looked at when the load is over.
  troubles.catch(() => undefined);
  // What waits for its moment, as a lost confirm does, needs load until the end.
  const isOver = () => time.isOver && (!isTroubled || time.overMs > TROUBLE_PATIENCE_MS);
  const produce = async () => {
    while (!isOver()) await producer.produce(options.perSecond, LOAD_PIECE_MS);
  };
  const progress = () =>
    say(
      `${seconds(time.elapsedMs)}: RabbitMQ sent ${journal.sent.length}, received ${journal.receipts.length}; ` +
        `HTTP sent ${http.sent.length + ofFile.sent.length}, received ${receiver.receipts.length} at ${receiver.origins.size} origins; ` +
        `troubles ${journal.troubles.length + fileJournal.troubles.length}, the last: ${lastTrouble()}; memory: ${memory.latest}`,
    );
  const sampling = setInterval(() => {
    void memory.sample('witness', witness.service);
    void memory.sample('file', file.service);
  }, SAMPLE_MS);
  const saying = setInterval(progress, SAY_MS);
  try {
    await Promise.all([
      produce(),
      http.run(httpPerSecond(options, lanes), isOver),
      ofFile.run(FILE_PER_SECOND, isOver),
    ]);
    clearInterval(sampling);
    if (isTroubled) return [`a fault did not come to its end; the last that did: ${lastTrouble()}`];
    await troubles;
    say('the load is over; waiting until everything has come to its end');
    const outcome = await scene.settle(witness.service, {
      patienceMs: SETTLE_MS,
      isOver: () => isIdle(file.service),
      others: () => new Set(http.sent.map(({ id }) => id)),
      async settle(result, evidence) {
        await settleHttp(result, { http, receiver, evidence, service: witness.service });
        await settleFile(result, { ofFile, receiver, fileJournal, service: file.service });
        result.faults.push(...http.faults, ...ofFile.faults);
        if (huge.length > 0) result.faults.push(...(await collectHuge(stage.rabbitmq.url, huge)));
      },
    });
    progress();
    const verdicts = memory.verdicts();
    for (const line of linesOf(verdicts)) say(line);
    return violationsOf(outcome, verdicts, receiver, lanes);
  } finally {
    clearInterval(sampling);
    clearInterval(saying);
  }
}

function anyOf(relays: readonly Relay[]): Relay {
  return relays[Math.floor(Math.random() * relays.length)]!;
}

/** Every lane is there before half of the time is over, where the machine can do that. */
function httpPerSecond({ minutes }: Options, lanes: number): number {
  return Math.min(MOST_HTTP_PER_SECOND, 40 + Math.ceil(lanes / (minutes * 60 * 0.4)));
}

async function settleHttp(
  result: Account,
  parts: { http: HttpLoad; receiver: Receiver; evidence: Evidence; service: Instance },
): Promise<void> {
  const { http, receiver, evidence, service } = parts;
  accountHttp(
    {
      sent: http.sent,
      receipts: receiver.receipts,
      troubles: evidence.journal.troubles,
      inInbox: new Set(evidence.items.map(({ message_id: id }) => id)),
      statusOf: new Map(evidence.rows.map(({ messageId, status }) => [messageId, status])),
      failedAttempts: await failedAttempts(service, http, receiver),
    },
    'http',
    result,
  );
}

async function settleFile(
  result: Account,
  parts: { ofFile: HttpLoad; receiver: Receiver; fileJournal: Journal; service: Instance },
): Promise<void> {
  const { ofFile, receiver, fileJournal, service } = parts;
  const items = await allItems(service);
  accountHttp(
    {
      sent: ofFile.sent,
      receipts: receiver.receipts,
      troubles: fileJournal.troubles,
      inInbox: new Set(items.map(({ message_id: id }) => id)),
      statusOf: await statuses(service),
      failedAttempts: await failedAttempts(service, ofFile, receiver),
    },
    'httpOfFile',
    result,
  );
}

interface Detail {
  attempts: { attempt: number; duration_ms: number; error: { code?: string } }[];
}

/** Of what came again after it had worked. */
async function failedAttempts(
  service: Instance,
  { sent }: HttpLoad,
  { receipts }: Receiver,
): Promise<Map<string, FailedAttempt[]>> {
  const own = new Set(sent.map(({ id }) => id));
  const found = new Map<string, FailedAttempt[]>();
  for (const id of repeatedIds(receipts).filter((one) => own.has(one))) {
    const { body } = await service.get<Detail>(`/api/v1/retries/${id}`);
    const failed = body.attempts.map(({ attempt, duration_ms: durationMs, error: { code } }) => ({
      attempt,
      durationMs,
      code,
    }));
    found.set(id, failed);
  }
  return found;
}

interface Page {
  items: { message_id: string; status: string }[];
  next_cursor: string | null;
}

async function statuses(service: Instance): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  let cursor: string | null = null;
  do {
    const query: string = cursor ? `&cursor=${encodeURIComponent(cursor)}` : '';
    const { body }: { body: Page } = await service.get(`/api/v1/retries?limit=100${query}`);
    for (const { message_id: id, status } of body.items) found.set(id, status);
    cursor = body.next_cursor;
  } while (cursor !== null);
  return found;
}

async function isIdle(service: Instance): Promise<boolean> {
  const { body } = await service.get<Page>('/api/v1/retries?status=pending&limit=1');
  return body.items.length === 0;
}

function violationsOf(
  outcome: Outcome,
  verdicts: readonly Verdict[],
  { origins }: Receiver,
  lanes: number,
): string[] {
  const violations = [...outcome.faults];
  for (const [queue, messages] of Object.entries(outcome.leftInQueues)) {
    violations.push(`${messages} messages are left in ${queue}`);
  }
  if (!outcome.isReady) violations.push('the service is not ready at the end');
  for (const [what, { seen, counted }] of Object.entries(duplicates(outcome))) {
    if (seen > counted) violations.push(`${what} twice: ${seen} were seen, ${counted} counted`);
  }
  for (const { name, afterWarmUp, atTheEnd, isFlat } of verdicts) {
    if (isFlat === false) {
      violations.push(`the memory of ${name} grew from ${mib(afterWarmUp)} to ${mib(atTheEnd)}`);
    }
  }
  if (origins.size < Math.min(lanes, FEW_LANES)) violations.push(`only ${origins.size} origins`);
  return violations;
}

function linesOf(verdicts: readonly Verdict[]): string[] {
  return verdicts.map(({ name, afterWarmUp, atTheEnd, most, isFlat }) => {
    const word = isFlat === undefined ? 'too short a run to tell' : isFlat ? 'flat' : 'grows';
    return `memory of ${name}: ${mib(afterWarmUp)} after warm-up, ${mib(atTheEnd)} at the end, ${mib(most)} at most: ${word}`;
  });
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
