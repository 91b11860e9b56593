/** Reports that come through a broker: the same as those of the API. */
import { type Broker, type Consumer, type Engine, type Received, uuidOf } from '@redrive/engine';
import { isNotificationError, type Notifications } from '@redrive/notifications';
import type { Logger } from 'pino';
import type { Clock } from 'redrive';
import type { Static } from 'typebox';
import { checkOf } from '../http/reading/validate.ts';
import { FailureItem, SuccessItem } from '../http/schemas/notifications.ts';
import { NOTIFICATION, REPORT } from './inbox.ts';
import { failureOf, successOf } from './wire.ts';

interface IntakeParts {
  broker: Broker;
  source: string;
  service: Pick<Notifications, 'reportFailure' | 'reportSuccess'>;
  engine: Pick<Engine, 'report'>;
  log: Logger;
  clock: Clock;
  /** What the inbox takes. */
  maxPayloadBytes: number;
  /** Told of each message. */
  counted: (result: 'taken' | 'unreadable') => void;
}

type TakingParts = Omit<IntakeParts, 'broker' | 'clock'>;

const AGAIN_MS = 1000;
const LIMITS = { maxMessages: 500, maxBytes: 16 * 1024 * 1024 };
const checkFailure = checkOf(FailureItem);
const checkSuccess = checkOf(SuccessItem);

/** A message is acknowledged when its report is durable, or lies in the inbox because nobody can take it. */
export async function consumeReports(parts: IntakeParts): Promise<Consumer> {
  const { broker, source, log, clock } = parts;
  const consumer: Consumer = await broker.consume(source, LIMITS, (message) => {
    void take(parts, message)
      .then(() => consumer.ack([message]))
      .catch((err: unknown) => {
        log.warn({ err, source }, 'a report could not be stored, and is read again');
        // Not at once: it would come again without a pause.
        clock.setTimer(
          () => void consumer.requeue([message]).catch(() => undefined),
          AGAIN_MS,
          true,
        );
      });
  });
  return consumer;
}

/** Rejects where the message must come again. */
async function take(parts: TakingParts, { payload }: Pick<Received, 'payload'>): Promise<void> {
  const { service, counted } = parts;
  const read = readReport(payload);
  try {
    if (read.type === 'failure') await service.reportFailure(read.report);
    if (read.type === 'success') await service.reportSuccess(read.report);
    if (read.type !== 'unreadable') return counted('taken');
    await park(parts, payload, 'UNREADABLE', read.why);
  } catch (error) {
    if (!isNotificationError(error) || error.code === 'RECORD_CONTENDED') throw error;
    await park(parts, payload, error.code, error.message);
  }
  counted('unreadable');
}

/** Neither lost nor taken in for ever. */
async function park(
  { engine, source, log, maxPayloadBytes }: TakingParts,
  whole: Uint8Array,
  code: string,
  message: string,
): Promise<void> {
  log.warn({ source, code }, `a report was refused, and is now in the inbox: ${message}`);
  // One that the inbox refuses would come again for ever. Its beginning says enough about who sent it.
  const isCut = whole.length > maxPayloadBytes;
  const payload = isCut ? whole.subarray(0, maxPayloadBytes) : whole;
  const note = isCut
    ? ` Only the first ${maxPayloadBytes} of its ${whole.length} bytes are here.`
    : '';
  const [answer] = await engine.report([
    {
      messageId: uuidOf('notification-report', source, Buffer.from(whole).toString('latin1')),
      to: { kind: NOTIFICATION, address: REPORT },
      payload,
      failure: { class: 'technical', code, message: `${message}${note}` },
      attempt: 1,
      maxAttempts: 1,
      verdict: 'UNREADABLE',
    },
  ]);
  if (answer?.status === 'rejected')
    throw new Error(`The inbox refused a report: ${answer.message}`);
}

export type ReadReport =
  | { type: 'failure'; report: ReturnType<typeof failureOf> }
  | { type: 'success'; report: ReturnType<typeof successOf> }
  | { type: 'unreadable'; why: string };

/** With `type: "success"`, or with `status: "delivered"` as an attempt has it, it is a success. */
export function readReport(payload: Uint8Array): ReadReport {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  } catch {
    return { type: 'unreadable', why: 'It is not JSON.' };
  }
  const { type, status, ...rest } = Object(value) as Record<string, unknown>;
  const isSuccess = type === 'success' || (type === undefined && status === 'delivered');
  if (!isSuccess && type !== undefined && type !== 'failure') {
    return { type: 'unreadable', why: `There is no report of type ${JSON.stringify(type)}.` };
  }
  const faults = (isSuccess ? checkSuccess : checkFailure)(rest, 'body');
  if (faults) {
    const why = faults.map(({ path, message }) => `${path}: ${message}`).join(' ');
    return { type: 'unreadable', why };
  }
  if (isSuccess) {
    const good = rest as Static<typeof SuccessItem>;
    return { type: 'success', report: successOf(good.notification_id, good) };
  }
  const good = rest as Static<typeof FailureItem>;
  return { type: 'failure', report: failureOf(good.notification_id, good) };
}
