/** Audit events as messages of a NATS subject, one event a message. */
import { ConfigError, type Fault } from 'redrive';
import { EngineError } from '../../../errors.ts';
import type { AuditSink } from '../../../ports/audit.ts';
import { checkObject, didYouMean, nearest } from 'redrive/internal';

export interface NatsAuditOptions {
  /** Where events are published; without wildcards (`redrive.audit`). */
  subject?: string;
  /**
   * True, the default: a batch is written when a JetStream stream has acknowledged every event. False: core NATS, where
   * a batch is written when the server has read it. What nobody subscribes to is gone then.
   */
  jetStream?: boolean;
}

/** What is needed of a connection of `@nats-io/transport-node`. It stays the caller's: closing the sink does not close it. */
export interface NatsAuditConnection {
  readonly info?: { readonly max_payload?: number };
  publish(subject: string, payload: Uint8Array): void;
  flush(): Promise<void>;
  request(
    subject: string,
    payload: Uint8Array,
    options: { timeout: number },
  ): Promise<{ readonly data: Uint8Array }>;
}

/** Below the five seconds that the trail gives a batch, so that the error says what is wrong. */
const ACK_MS = 4000;

/**
 * An audit trail on a NATS subject.
 *
 * @example createEngine({ store, audit: natsAudit(await connect({ servers })) })
 */
export function natsAudit(
  connection: NatsAuditConnection,
  options: NatsAuditOptions = {},
): AuditSink {
  const { subject, jetStream } = readOptions(connection, options);
  return {
    async write(events) {
      // All of them before the first one is sent: what cannot be JSON fails the batch as a whole.
      const payloads = events.map((event) => encoder.encode(JSON.stringify(event)));
      refuseLarge(payloads, connection.info?.max_payload ?? Infinity);
      if (jetStream) await publishAcknowledged(connection, subject, payloads);
      else {
        for (const payload of payloads) connection.publish(subject, payload);
        if (payloads.length > 0) await connection.flush();
      }
    },
  };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Sent at once, in order. Every answer is awaited, so that nothing of a failed batch is under way when it is tried again. */
async function publishAcknowledged(
  connection: NatsAuditConnection,
  subject: string,
  payloads: readonly Uint8Array[],
): Promise<void> {
  const answers = await Promise.allSettled(
    payloads.map((payload) => connection.request(subject, payload, { timeout: ACK_MS })),
  );
  for (const answer of answers) {
    if (answer.status === 'rejected') throw notTaken(subject, answer.reason);
    const { stream, error } = readAck(answer.value.data);
    if (error !== undefined) throw refused(`JetStream refused an event on ${subject}: ${error}.`);
    if (stream === undefined) throw noStream(subject);
  }
}

/** An acknowledgement names its stream. Any other answer is of somebody who subscribes to the subject. */
function readAck(data: Uint8Array): { stream?: string; error?: string } {
  let ack: unknown;
  try {
    ack = JSON.parse(decoder.decode(data));
  } catch {
    return {};
  }
  if (typeof ack !== 'object' || ack === null) return {};
  const { stream, error } = ack as Record<string, unknown>;
  if (typeof error === 'object' && error !== null) {
    const { description } = error as Record<string, unknown>;
    return { error: typeof description === 'string' ? description : 'no reason given' };
  }
  return typeof stream === 'string' && stream !== '' ? { stream } : {};
}

function notTaken(subject: string, error: unknown): unknown {
  if (isNoResponders(error)) return noStream(subject, error);
  return refused(`No acknowledgement for events on ${subject}: ${String(error)}.`, error);
}

/** Also while a stream of several servers has no leader: the trail tries again. */
function isNoResponders(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one.name === 'NoRespondersError' || /no responders/i.test(one.message)) return true;
  }
  return false;
}

function noStream(subject: string, cause?: unknown): EngineError {
  return refused(
    `No JetStream stream takes the subject ${subject}. Add one: nats stream add AUDIT --subjects ${subject}. ` +
      'Or use core NATS: jetStream: false.',
    cause,
  );
}

function refuseLarge(payloads: readonly Uint8Array[], maxBytes: number): void {
  for (const { length } of payloads) {
    if (length <= maxBytes) continue;
    throw refused(`An event has ${length} bytes, and the server takes ${maxBytes} (max_payload).`);
  }
}

function refused(message: string, cause?: unknown): EngineError {
  return new EngineError('AUDIT_SINK_FAILED', message, cause === undefined ? {} : { cause });
}

const names = ['subject', 'jetStream'];

function readOptions(
  connection: NatsAuditConnection,
  options: NatsAuditOptions,
): Required<NatsAuditOptions> {
  checkObject('The NATS audit sink', options);
  const { subject = 'redrive.audit', jetStream = true } = options;
  const faults: Fault[] = [];
  const fault = (path: string, message: string) =>
    faults.push({ path, code: 'INVALID_VALUE', message });
  if (typeof connection?.request !== 'function' || typeof connection.publish !== 'function') {
    fault('connection', 'is no connection of @nats-io/transport-node: await connect(...) first.');
  }
  if (
    typeof subject !== 'string' ||
    subject.length > 255 ||
    !/^[^\s.*>]+(\.[^\s.*>]+)*$/.test(subject)
  ) {
    fault('subject', 'must be a subject without wildcards and spaces, such as redrive.audit.');
  }
  if (typeof jetStream !== 'boolean') fault('jetStream', 'must be true or false.');
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) {
      const message = `there is no such field.${didYouMean(nearest(name, names))}`;
      faults.push({ path: name, code: 'UNKNOWN_FIELD', message });
    }
  }
  if (faults.length > 0) {
    throw new ConfigError('INVALID_CONFIG', 'The NATS audit sink has faults:', faults);
  }
  return { subject, jetStream };
}
