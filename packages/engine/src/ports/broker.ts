import type { Failure } from 'redrive';

/** A message broker: takes messages over, and hands out those that failed elsewhere. */
export interface Broker {
  /** The `kind` of the destinations it serves: `queue` for RabbitMQ. */
  readonly kind: string;
  readonly capabilities: BrokerCapabilities;

  open(): Promise<void>;
  close(): Promise<void>;

  /** Whether it takes messages now. While it does not, nothing is claimed for it. */
  readonly isReady: boolean;
  /** Calls back when that has changed. Returns the end of it. */
  watch(listener: () => void): () => void;

  /**
   * Publishes. One answer per message, as soon as it is known, and never a rejection: one that is bad or that nobody
   * confirms spoils and holds up no other.
   */
  publish(messages: readonly Publication[], options: PublishOptions): Promise<Published>[];

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
  /** Brings over numbers in headers as numbers. Without it they come as texts. */
  typedHeaders: boolean;
  /** Hands over in its old order what was given back or left. */
  redeliversInOrder: boolean;
  /** Forgets a message that was acknowledged, whatever came before it. Without it, what comes after the first message that nobody has acknowledged comes again when its consumer has stopped. */
  acknowledgesOutOfOrder: boolean;
  /** Says of a message that another consumer left that it was handed over before. */
  marksRedelivered: boolean;
  /** Several consumers of one queue share its messages one by one. Without it they share its partitions. */
  sharesByMessage: boolean;
  /** What a message may have, with its headers, so that it is surely taken with the server's settings as they come. */
  maxMessageBytes: number;
}

export interface PublishOptions {
  /** How long a confirm may take. */
  timeoutMs: number;
  /** It may be what broke something before: nothing else may depend on how it goes. */
  alone?: boolean;
}

export interface Publication {
  address: string;
  payload: Uint8Array;
  headers: Readonly<Record<string, string | number>>;
  contentType?: string;
  extra?: Readonly<Record<string, unknown>>;
}

/**
 * `impossible`: the broker will never take it as it is. `refused`: not taken, its destination is in trouble. `unknown`: no
 * answer in time, so its destination is in trouble, and it may have been taken. `lost`: the connection or the channel went
 * away under it, which says nothing of its destination; it may have been taken. `away`: it was not sent, since the broker is
 * not ready. None of these burns an attempt.
 */
export type Published =
  | { outcome: 'confirmed' }
  /** `failure` says more than that nobody listens there, where the broker knows more. */
  | { outcome: 'unroutable'; failure?: Failure }
  | { outcome: 'impossible' | 'refused' | 'unknown' | 'lost' | 'away'; failure: Failure };

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
  /** Set by the broker when the channel that it came over is gone: it comes again, and to acknowledge it does nothing. */
  gone?: boolean;
}

export interface Consumer {
  /** How it is, where the broker can say: `waiting` until it consumes. */
  readonly state?: { state: 'waiting' | 'consuming' | 'stopped'; why?: string };
  ack(messages: readonly Received[]): Promise<void>;
  /** Back to the broker, to be delivered again. */
  requeue(messages: readonly Received[]): Promise<void>;
  /** Takes no further messages until those that it has handed over are settled. Then it goes on by itself. */
  drain?(): void;
  stop(): Promise<void>;
}
