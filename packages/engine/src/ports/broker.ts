import type { Failure } from 'redrive';

/** A message broker: takes messages over, and hands out those that failed elsewhere. */
export interface Broker {
  /** The `kind` of the destinations it serves: `queue` for RabbitMQ. */
  readonly kind: string;
  readonly capabilities: BrokerCapabilities;

  open(): Promise<void>;
  close(): Promise<void>;

  /** Publishes a batch and waits for the confirms. One outcome per message: one bad message never spoils the others. */
  publish(messages: readonly Publication[], timeoutMs: number): Promise<Published[]>;

  /** Hands over messages as they come, never more unacknowledged ones than the limits. */
  consume(
    source: string,
    limits: ConsumeLimits,
    receive: (message: Received) => void,
  ): Promise<Consumer>;
}

export interface BrokerCapabilities {
  /** Tells when nobody listens at the destination. */
  returnsUnroutable: boolean;
  /** Confirms each message after it is safe. */
  confirms: boolean;
}

export interface Publication {
  address: string;
  payload: Uint8Array;
  headers: Readonly<Record<string, string | number>>;
  contentType?: string;
  extra?: Readonly<Record<string, unknown>>;
}

/** `unknown`: it may have been taken or not; the lane is in trouble. No attempt is burnt by it. */
export type Published =
  | { outcome: 'confirmed' }
  | { outcome: 'unroutable' }
  | { outcome: 'refused'; failure: Failure }
  | { outcome: 'unknown'; failure: Failure };

export interface ConsumeLimits {
  maxMessages: number;
  maxBytes: number;
}

export interface Received {
  /** The broker's own handle of this delivery, for `ack` and `reject`. */
  tag: unknown;
  payload: Uint8Array;
  headers: Readonly<Record<string, unknown>>;
  contentType?: string;
  redelivered: boolean;
  extra?: Readonly<Record<string, unknown>>;
}

export interface Consumer {
  ack(messages: readonly Received[]): Promise<void>;
  /** Back to the broker, to be delivered again. */
  requeue(messages: readonly Received[]): Promise<void>;
  stop(): Promise<void>;
}
