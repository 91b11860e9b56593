import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import { faultOf } from './faults.ts';
import { type OperationOptions, underCategory } from './operation.ts';

export interface SubscribeOptions extends OperationOptions {
  /** Subscriptions of one group share the messages: each of them goes to one. */
  queue?: string;
  /** Ends after so many messages. */
  max?: number;
}

/**
 * Subscribes to a subject of core NATS under `NATS_SUBSCRIBE`, and resolves when the server knows of it: what is
 * published after that arrives. For messages of a stream use a consumer.
 *
 * @example for await (const message of await subscribe(connection, 'orders.*')) console.log(message.string());
 */
export async function subscribe(
  connection: NatsConnection,
  subject: string,
  options: SubscribeOptions = {},
): Promise<Subscription> {
  const { queue, max, ...rest } = options;
  const doing = `subscribe to ${subject}`;
  const wish = { ...(queue === undefined ? {} : { queue }), ...(max === undefined ? {} : { max }) };
  return underCategory('NATS_SUBSCRIBE', doing, rest, async () => {
    let subscription: Subscription | undefined;
    try {
      subscription = connection.subscribe(subject, wish);
      // The server answers in order: what it says of the subscription comes before the answer to the flush.
      await connection.flush();
      const isRefused = subscription.isClosed() && subscription.getReceived() === 0;
      // The client tells the reason to whoever reads.
      if (isRefused) await subscription[Symbol.asyncIterator]().next();
      // One that comes too late, after the timeout, is drained by whoever discards it.
      return subscription;
    } catch (error) {
      subscription?.unsubscribe();
      throw faultOf(error, connection, doing);
    }
  });
}
