import type { ConsumeMessage, MessageProperties } from 'amqplib';
import type { Received } from '../../ports/broker.ts';
import { tableOf } from './internals.ts';

/** The channel that a delivery came over. */
export interface Owner {
  ack(messages: readonly Received[]): void;
  requeue(messages: readonly Received[]): void;
}

/** A delivery's handle: its number counts within its channel only. */
export interface Tag {
  readonly owner: Owner;
  readonly deliveryTag: number;
}

/** What readers find in `Received.extra`. */
export interface RabbitExtra {
  readonly exchange: string;
  readonly routingKey: string;
  /** The AMQP properties that are set, in amqplib's names, `headers` not among them. */
  readonly properties: Readonly<Record<string, unknown>>;
  /** The headers as they came, with the types that a client forgets. */
  readonly table?: Uint8Array;
}

export function receivedOf(
  { content, fields, properties }: ConsumeMessage,
  owner: Owner,
): Received & { extra: RabbitExtra } {
  const { contentType, headers } = properties as { contentType?: unknown; headers?: object };
  const table = tableOf(properties);
  const tag: Tag = { owner, deliveryTag: fields.deliveryTag };
  return {
    tag,
    payload: content,
    headers: (headers ?? {}) as Received['headers'],
    ...(typeof contentType === 'string' ? { contentType } : {}),
    redelivered: fields.redelivered,
    extra: {
      exchange: fields.exchange,
      routingKey: fields.routingKey,
      properties: setProperties(properties),
      ...(table ? { table } : {}),
    },
  };
}

function setProperties(properties: MessageProperties): Record<string, unknown> {
  const set: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(properties as object as Record<string, unknown>)) {
    if (value !== undefined && name !== 'headers') set[name] = value;
  }
  return set;
}
