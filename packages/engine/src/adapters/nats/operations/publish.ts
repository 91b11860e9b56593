import type { JetStreamPublishOptions } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { freshId } from 'redrive/internal';
import { EngineError } from '../../../errors.ts';
import { prepare } from '../prepare.ts';
import { lookUpStream, noStream } from '../streams.ts';
import { faultOf, isUnanswered, unavailable } from './faults.ts';
import { type OperationOptions, underCategory } from './operation.ts';
import { jetstream, jetstreamManager, headers } from '../library.ts';

export interface NatsPublishOptions extends OperationOptions {
  headers?: Readonly<Record<string, string>>;
  /**
   * Names the message: within its duplicate window a stream stores one message of a name (a fresh id). Give your own where
   * a later call may publish the same message again.
   */
  messageId?: string;
  /** False publishes by core NATS: nobody confirms, and what nobody listens to is gone (true). */
  confirms?: boolean;
}

export interface Confirm {
  stream: string;
  sequence: number;
  /** The stream had a message of this id, and did not store another one. */
  duplicate: boolean;
}

/**
 * Publishes under `NATS_PUBLISH`, and resolves when a stream has stored the message; without confirms when the server has
 * read it.
 *
 * @example await publish(connection, 'orders.eu', JSON.stringify(order), { messageId: order.id });
 */
export async function publish(
  connection: NatsConnection,
  subject: string,
  payload: Uint8Array | string,
  options: NatsPublishOptions = {},
): Promise<Confirm | undefined> {
  const { headers: given = {}, messageId = freshId(), confirms = true, ...rest } = options;
  const doing = `publish to ${subject}`;
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
  return underCategory('NATS_PUBLISH', doing, rest, async ({ timeoutMs }) => {
    const maxPayload = connection.info?.max_payload ?? Infinity;
    const ready = prepare({ address: subject, payload: bytes, headers: given }, maxPayload);
    if (ready.outcome === 'impossible') {
      throw new EngineError('NATS_REFUSED', `Cannot ${doing}: ${ready.failure.message}`);
    }
    const { headers: written = headers() } = ready;
    try {
      if (confirms) {
        const publication = { headers: written, msgID: messageId, timeout: timeoutMs };
        return await publishConfirmed(connection, subject, bytes, publication);
      }
      connection.publish(subject, bytes, { headers: written });
      await connection.flush();
      return undefined;
    } catch (error) {
      throw faultOf(error, connection, doing);
    }
  });
}

async function publishConfirmed(
  connection: NatsConnection,
  subject: string,
  bytes: Uint8Array,
  publication: Partial<JetStreamPublishOptions> & { timeout: number },
): Promise<Confirm> {
  const settings = { timeout: publication.timeout, checkAPI: false };
  try {
    const ack = await jetstream(connection, settings).publish(subject, bytes, publication);
    return { stream: ack.stream, sequence: ack.seq, duplicate: ack.duplicate };
  } catch (error) {
    if (!isUnanswered(error) || connection.info?.jetstream !== true) throw error;
    // No stream and an election look the same from here.
    const found = await lookUpStream(await jetstreamManager(connection, settings), subject);
    if (found.type === 'none') throw new EngineError('NATS_NO_STREAM', noStream(subject));
    throw unavailable(`publish to ${subject}`, 'nobody answers for its stream', '', error);
  }
}
