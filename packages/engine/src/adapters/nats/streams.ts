/** Streams and durable consumers: looked for, and made where they are missing. */
import type { ConsumerInfo, JetStreamManager, StoredMsg } from '@nats-io/jetstream';
import { textOf } from '../../broker/answers.ts';
import type { NatsSettings, StreamSpec } from './options.ts';
import {
  AckPolicy,
  DeliverPolicy,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  nanos,
} from './library.ts';

/** `none`: JetStream says that there is none. `away`: JetStream does not say anything, so there may be one. */
type Lookup = { type: 'found'; stream: string } | { type: 'none' } | { type: 'away' };

/** A consumer that can be pulled from, or why there is none. */
export type Source = { type: 'ready'; stream: string; consumer: string; ackWaitMs: number } | Fault;

interface Fault {
  type: 'fault';
  why: string;
}

const STREAM_NOT_FOUND = 10059;
const CONSUMER_NOT_FOUND = 10014;
const NO_MESSAGE = 10037;
/** Messages that all instances together may have unacknowledged. */
const MAX_ACK_PENDING = 20_000;

export class Streams {
  readonly #manager: JetStreamManager;
  readonly #settings: NatsSettings;

  constructor(manager: JetStreamManager, settings: NatsSettings) {
    this.#manager = manager;
    this.#settings = settings;
  }

  /** Why JetStream does not answer; undefined: it does. */
  async trouble(): Promise<string | undefined> {
    try {
      await this.#manager.getAccountInfo();
      return undefined;
    } catch (error) {
      return `JetStream does not answer: ${textOf(error)}. It may be choosing a leader; if this lasts, enable JetStream for the account (jetstream {} in the server's configuration).`;
    }
  }

  /** Makes what is missing. Returns what could not be had. */
  async declareAll(): Promise<string | undefined> {
    for (const spec of this.#settings.streams) {
      const why = spec.onDemand ? undefined : await this.#declare(spec);
      if (why !== undefined) return why;
    }
    return undefined;
  }

  /** Makes the stream of this subject, where the settings have one. */
  async declareFor(subject: string): Promise<boolean> {
    const spec = this.#settings.streams.find(({ subjects }) => subjects.includes(subject));
    return spec !== undefined && (await this.#declare(spec)) === undefined;
  }

  lookUp(subject: string): Promise<Lookup> {
    return lookUpStream(this.#manager, subject);
  }

  /** A source is the name of a stream of the settings, or a subject that some stream has. */
  async source(source: string): Promise<Source> {
    const { streams, durable } = this.#settings;
    const spec = streams.find(({ name }) => name === source);
    if (spec) return this.#consumer(spec.name, durable, undefined);
    const found = await this.lookUp(source);
    if (found.type === 'away') return fault('JetStream does not answer.');
    if (found.type === 'none') return fault(noStream(source));
    const name = `${durable}-${source.replaceAll(/[^\w-]/g, '_')}`;
    return this.#consumer(found.stream, name, source);
  }

  /** Undefined: the stream, or the message in it, is gone. */
  async message(stream: string, sequence: number): Promise<StoredMsg | undefined> {
    try {
      return (await this.#manager.streams.getMessage(stream, { seq: sequence })) ?? undefined;
    } catch (error) {
      if (isCode(error, STREAM_NOT_FOUND) || isCode(error, NO_MESSAGE)) return undefined;
      throw error;
    }
  }

  async #declare({ name, subjects, replicas, retention }: StreamSpec): Promise<string | undefined> {
    try {
      const { config } = await this.#manager.streams.info(name);
      return lackOf(name, config.subjects, subjects);
    } catch (error) {
      if (!isCode(error, STREAM_NOT_FOUND)) return notMade(`stream ${name}`, error);
    }
    // Somebody else may have a stream for them.
    const others = await Promise.all(subjects.map((subject) => this.lookUp(subject)));
    if (others.every(({ type }) => type === 'found')) return undefined;
    try {
      await this.#manager.streams.add({
        name,
        subjects: [...subjects],
        storage: StorageType.File,
        retention: retention === 'workqueue' ? RetentionPolicy.Workqueue : RetentionPolicy.Limits,
        num_replicas: replicas ?? 1,
      });
      return undefined;
    } catch (error) {
      return notMade(`stream ${name}`, error);
    }
  }

  async #consumer(stream: string, name: string, subject: string | undefined): Promise<Source> {
    const { consumers } = this.#manager;
    try {
      const info = await consumers.info(stream, name).catch((error: unknown) => {
        if (!isCode(error, CONSUMER_NOT_FOUND)) throw error;
        return consumers.add(stream, {
          durable_name: name,
          ack_policy: AckPolicy.Explicit,
          deliver_policy: DeliverPolicy.All,
          ack_wait: nanos(this.#settings.ackWaitMs),
          max_ack_pending: MAX_ACK_PENDING,
          ...(subject === undefined ? {} : { filter_subject: subject }),
        });
      });
      const why = faultOf(info, subject);
      if (why !== undefined) return fault(why);
      const ackWaitMs = (info.config.ack_wait ?? nanos(this.#settings.ackWaitMs)) / 1e6;
      return { type: 'ready', stream, consumer: name, ackWaitMs };
    } catch (error) {
      return fault(notMade(`consumer ${name} of stream ${stream}`, error));
    }
  }
}

export async function lookUpStream(manager: JetStreamManager, subject: string): Promise<Lookup> {
  try {
    const [stream] = await manager.streams.names(subject).next();
    return stream === undefined ? { type: 'none' } : { type: 'found', stream };
  } catch {
    return { type: 'away' };
  }
}

/** Which subjects a stream lacks, with the command that adds them; undefined: none. */
export function lackOf(
  name: string,
  has: readonly string[],
  wanted: readonly string[],
): string | undefined {
  const missing = wanted.filter((one) => !has.includes(one));
  if (missing.length === 0) return undefined;
  const all = [...has, ...missing].map(quoted).join(' --subjects ');
  return `Stream ${name} exists without ${missing.join(', ')}. Add it: nats stream edit ${name} --force --subjects ${all}`;
}

/** What is wrong with a consumer that somebody else has made. */
function faultOf(
  { config, name, stream_name }: ConsumerInfo,
  subject?: string,
): string | undefined {
  const { ack_policy, deliver_subject, max_deliver = -1, filter_subject } = config;
  const mend = `Delete it, and Redrive makes another one: nats consumer rm ${stream_name} ${name} --force`;
  const what = `Consumer ${name} of stream ${stream_name}`;
  if (deliver_subject) return `${what} is a push consumer. ${mend}`;
  if (ack_policy !== AckPolicy.Explicit) return `${what} is not acknowledged one by one. ${mend}`;
  if (max_deliver > 0) return `${what} gives messages up after ${max_deliver} deliveries. ${mend}`;
  if (subject !== undefined && filter_subject !== subject) {
    return `${what} has another subject than ${subject}. ${mend}`;
  }
  return undefined;
}

/** With the command that mends it. */
export function noStream(subject: string): string {
  const name = (/^[\w-]+/.exec(subject)?.[0] ?? 'redrive').toUpperCase();
  return `No stream has the subject ${subject}. Create one: nats stream add ${name} --subjects ${quoted(subject)} --defaults`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function notMade(what: string, error: unknown): string {
  return `The ${what} is not there and could not be made: ${textOf(error)}`;
}

function fault(why: string): Fault {
  return { type: 'fault', why };
}

function isCode(error: unknown, code: number): boolean {
  return error instanceof JetStreamApiError && error.code === code;
}
