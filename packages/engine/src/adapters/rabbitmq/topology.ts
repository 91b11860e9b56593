import type { Channel, ChannelModel } from 'amqplib';
import type { Log } from '../../host.ts';
import { closeChannel } from './channels.ts';
import { textOf } from '../../broker/answers.ts';

/** What must be there. What exists already is used as it is. */
export interface Topology {
  readonly queues?: readonly QueueSpec[];
  readonly exchanges?: readonly { readonly name: string; readonly type: ExchangeType }[];
  readonly bindings?: readonly Binding[];
}

export interface QueueSpec {
  readonly name: string;
  /** What it becomes where it is missing (`classic`). It is durable in any case. */
  readonly type?: 'classic' | 'quorum';
  /** False: nothing but a line in the log where it can be neither found nor made (true). */
  readonly required?: boolean;
  /** True: it is created when a message for it finds no queue, and not before (false). */
  readonly onDemand?: boolean;
}

export type ExchangeType = 'direct' | 'topic' | 'fanout' | 'headers';

export interface Binding {
  readonly exchange: string;
  readonly queue: string;
  readonly pattern: string;
}

const NOT_FOUND = 404;
const PRECONDITION_FAILED = 406;

/** Makes sure that things are there, each on a channel of its own: the broker closes it whenever it says no. */
export class Declarer {
  readonly #topology: Topology;
  readonly #log: Log;
  readonly #said = new Set<string>();
  /** What exchanges are, where that is not what they should be. */
  readonly #otherTypes = new Map<string, string>();

  constructor(topology: Topology, log: Log) {
    this.#topology = topology;
    this.#log = log;
  }

  /** All of it. Answers what is missing and could not be made; undefined: nothing of importance. */
  async declareAll(model: ChannelModel): Promise<string | undefined> {
    const { exchanges = [], queues = [], bindings = [] } = this.#topology;
    const faults: (string | undefined)[] = [];
    for (const { name, type } of exchanges) {
      const declare = (channel: Channel) => channel.assertExchange(name, type, { durable: true });
      faults.push(
        await this.#ensure(model, `exchange ${name}`, {
          compare: true,
          look: (channel) => channel.checkExchange(name),
          declare,
          isOther: (text) => this.#otherTypes.set(name, typeIn(text)),
        }),
      );
    }
    for (const queue of queues) {
      if (queue.onDemand) continue;
      const fault = await this.#queue(model, queue);
      if (queue.required !== false) faults.push(fault);
    }
    for (const binding of bindings) faults.push(await this.#bind(model, binding));
    return faults.find((fault) => fault !== undefined);
  }

  /** One queue with its bindings, as the topology has it, or plain. */
  async declareQueue(model: ChannelModel, name: string): Promise<string | undefined> {
    const spec = this.#topology.queues?.find((queue) => queue.name === name);
    // Of one that nobody described any will do.
    const fault = await this.#queue(model, spec ?? { name }, spec !== undefined);
    if (fault) return fault;
    for (const binding of this.#topology.bindings ?? []) {
      if (binding.queue === name) await this.#bind(model, binding);
    }
    return undefined;
  }

  has(queue: string): boolean {
    return this.#topology.queues?.some(({ name }) => name === queue) ?? false;
  }

  #queue(
    model: ChannelModel,
    { name, type = 'classic' }: QueueSpec,
    compare = true,
  ): Promise<string | undefined> {
    return this.#ensure(model, `queue ${name}`, {
      compare,
      look: (channel) => channel.checkQueue(name),
      declare: (channel) =>
        channel.assertQueue(name, {
          durable: true,
          // A queue without a type is classic, and one that was declared so long ago must not look like another.
          ...(type === 'quorum' ? { arguments: quorum(model) } : {}),
        }),
    });
  }

  /**
   * Looks first: that needs no right to make things. To compare, it is declared all the same, since only that tells whether
   * what exists is what was meant.
   */
  async #ensure(
    model: ChannelModel,
    what: string,
    { look, declare, compare, isOther }: Wanted,
  ): Promise<string | undefined> {
    const missing = await attempt(model, look);
    if (missing && missing.code !== NOT_FOUND) return this.#fault(what, missing);
    if (!missing && !compare) return undefined;
    const refusal = await attempt(model, declare);
    if (!refusal) return undefined;
    if (missing) return this.#fault(what, refusal);
    if (refusal.code === PRECONDITION_FAILED) {
      isOther?.(refusal.text);
      this.#sayOnce(
        what,
        `The ${what} exists with other settings and is used as it is`,
        refusal.text,
      );
    }
    return undefined;
  }

  async #bind(
    model: ChannelModel,
    { exchange, queue, pattern }: Binding,
  ): Promise<string | undefined> {
    const type = this.#otherTypes.get(exchange);
    // Without a header to look for it takes every message.
    const args = type === 'headers' ? { 'x-match': 'all' } : {};
    const refusal = await attempt(model, (channel) =>
      channel.bindQueue(queue, exchange, pattern, args),
    );
    const what = `binding of ${queue} to ${exchange}`;
    if (refusal) return this.#fault(what, refusal);
    if (type !== 'direct' || !/[*#]/.test(pattern)) return undefined;
    const sentence = `The ${what} by ${pattern} brings nothing`;
    const why = `${exchange} is a direct exchange, which knows no patterns: name the routing keys`;
    this.#sayOnce(what, sentence, why);
    return `${sentence}: ${why}.`;
  }

  #fault(what: string, { code, text }: Refusal): string {
    const sentence = `The ${what} is not there and could not be made`;
    // Where the connection has ended nothing was refused.
    if (code !== undefined) this.#sayOnce(what, sentence, text);
    return `${sentence}: ${text}`;
  }

  #sayOnce(what: string, sentence: string, why: string): void {
    if (this.#said.has(sentence)) return;
    this.#said.add(sentence);
    this.#log.warn({ what, why }, sentence);
  }
}

interface Wanted {
  look: (channel: Channel) => Promise<unknown>;
  declare: (channel: Channel) => Promise<unknown>;
  compare: boolean;
  /** It exists, and is not what was meant. */
  isOther?: (text: string) => void;
}

interface Refusal {
  code: number | undefined;
  text: string;
}

async function attempt(
  model: ChannelModel,
  action: (channel: Channel) => Promise<unknown>,
): Promise<Refusal | undefined> {
  try {
    const channel = await model.createChannel();
    // The same error also rejects the call that it answers.
    channel.on('error', () => undefined);
    await action(channel);
    await closeChannel(channel);
    return undefined;
  } catch (error) {
    return { code: (error as { code?: number }).code, text: textOf(error) };
  }
}

/** The type that an exchange has, by the broker's refusal to declare it with another. */
function typeIn(text: string): string {
  return /arg 'type' .* current is '([^']+)'/.exec(text)?.[1] ?? 'unknown';
}

/**
 * From RabbitMQ 4 on a quorum queue drops what was delivered 20 times, and a service that crashes while its database is away
 * takes the same messages again and again. Before, there is no limit, and -1 would be one.
 */
function quorum(model: ChannelModel): Record<string, unknown> {
  const { version } = model.connection.serverProperties as { version?: unknown };
  const isLimited = Number.parseInt(String(version), 10) >= 4;
  return { 'x-queue-type': 'quorum', ...(isLimited ? { 'x-delivery-limit': -1 } : {}) };
}
