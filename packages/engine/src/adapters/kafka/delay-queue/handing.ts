/** One batch in the hands of a handler. */
import { delayFor, type Policy } from 'redrive';
import { readAnswers } from '../../../delay-queue/checks.ts';
import type { Host } from '../../../host.ts';
import type { DelayAnswer, DelayHandler } from '../../../ports/delay-queue.ts';
import type { OutRecord } from '../client/producer.ts';
import type { BrokerClock } from './broker-clock.ts';
import type { DueReader, Held } from './due-reader.ts';
import { onward } from './entry.ts';
import type { Tiers } from './tiers.ts';

interface Parts {
  readonly handler: DelayHandler;
  readonly timeoutMs: number;
  readonly host: Host;
  readonly tiers: Tiers;
  readonly clock: BrokerClock;
  /** Resolves when the records are durable; gives up, false, when the partition is lost. */
  readonly send: (records: readonly OutRecord[], signal: AbortSignal) => Promise<boolean>;
}

/** Before an entry whose handler failed is handed over once more. */
const unansweredPauses: Policy = { base: '100ms', cap: '30s', jitter: 'equal' };

/** Hands a batch over and does what its handler answers. Resolves when that is durable; never rejects. */
export async function handOver(
  reader: DueReader,
  batch: readonly Held[],
  { handler, timeoutMs, host, tiers, clock, send }: Parts,
): Promise<void> {
  const { signal } = reader.ending;
  const answers = await ask(reader, batch, { handler, timeoutMs, host });
  if (signal.aborted) return;
  if (!answers) {
    // The pause counts from now, which nobody may have asked for in a while.
    await clock.ask();
    for (const held of batch) {
      const facts = { attempt: held.redeliveries + 1, random: host.random() };
      reader.putBack(held, clock.nowMs + delayFor(unansweredPauses, facts));
    }
    return;
  }
  const again = batch.flatMap((held, i): OutRecord[] => {
    const answer = answers[i]!;
    return answer.type === 'again' ? [recordAgain(held, answer.delayMs, tiers)] : [];
  });
  // First the new entries, then the end of the old: a crash between makes two of one, never none.
  if (again.length > 0 && !(await send(again, signal))) return;
  for (const held of batch) reader.finish(held);
}

function recordAgain({ record }: Held, delayMs: number, tiers: Tiers): OutRecord {
  return onward(tiers.topicFor(delayMs), record, { afterMs: delayMs });
}

/** The answers; undefined where there are none that count. */
async function ask(
  reader: DueReader,
  batch: readonly Held[],
  { handler, timeoutMs, host }: Pick<Parts, 'handler' | 'timeoutMs' | 'host'>,
): Promise<readonly DelayAnswer[] | undefined> {
  const { clock, log } = host;
  const ending = reader.ending.signal;
  const count = batch.length;
  const abort = new AbortController();
  const given = new Promise<undefined>((resolve) => {
    abort.signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  const lost = () => abort.abort(ending.reason);
  ending.addEventListener('abort', lost, { once: true });
  if (ending.aborted) lost();
  // A handler that hangs must not keep its entries for ever.
  const limit = clock.setTimer(() => {
    const message = `the handler of delayed entries did not answer within ${timeoutMs} ms; the entries are handed over again`;
    log.error({ count, timeoutMs }, message);
    abort.abort(new Error(`The handler did not answer within ${timeoutMs} ms.`));
  }, timeoutMs);
  try {
    const entries = batch.map((held) => reader.entryOf(held));
    const answered = await Promise.race([handler(entries, abort.signal), given]);
    if (abort.signal.aborted) return undefined;
    const answers = readAnswers(answered, count);
    if (typeof answers !== 'string') return answers;
    const message = `the handler of delayed entries answered wrongly, and they come again. ${answers}`;
    log.error({ count }, message);
  } catch (error) {
    log.warn({ err: error, count }, 'the handler of delayed entries failed, and they come again');
  } finally {
    clock.clearTimer(limit);
    ending.removeEventListener('abort', lost);
  }
  return undefined;
}
