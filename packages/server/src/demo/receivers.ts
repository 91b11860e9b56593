/** Three services that receive what the demo sends, each in its own way. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export const names = ['mail', 'stock', 'bank'] as const;
export type ReceiverName = (typeof names)[number];

/** What is sent to them. */
export interface Order {
  /** From 1 on. */
  order: number;
  /** Of messages that must come in order: from 1 on. */
  sequence?: number;
  /** Breaks whoever reads it. */
  poison?: true;
}

export interface Receivers {
  readonly urls: Readonly<Record<ReceiverName, string>>;
  /** What came of the messages that must come in order: how many, and whether any overtook another. */
  readonly order: { received: number; isInOrder: boolean };
  /** Messages that were taken, each counted once, and how often one came again. */
  readonly taken: { messages: number; again: number };
  /** Ends or begins the outage of `bank`. */
  setDown(isDown: boolean): void;
  close(): Promise<void>;
}

const FLAKY_SHARE = 0.3;
const RETRY_AFTER_S = 1;

export async function startReceivers(random: () => number = Math.random): Promise<Receivers> {
  const order = { received: 0, isInOrder: true };
  const taken = { messages: 0, again: 0 };
  const seen = new Seen();
  let isDown = false;
  const answers: Record<ReceiverName, (order: Order) => number> = {
    mail: ({ poison }) => (poison === true ? 500 : 200),
    stock(message) {
      if (random() < FLAKY_SHARE) return 503;
      if (message.sequence !== undefined) note(message.sequence);
      return 200;
    },
    bank: () => (isDown ? 503 : 200),
  };
  const servers = await Promise.all(
    names.map((name) =>
      listen((message) => {
        const status = answers[name](message);
        if (status === 200) taken[seen.add(message.order) ? 'messages' : 'again'] += 1;
        return {
          status,
          ...(name === 'bank' && status === 503 ? { retryAfterS: RETRY_AFTER_S } : {}),
        };
      }),
    ),
  );
  const urls = Object.fromEntries(
    servers.map((server, i) => {
      const { port } = server.address() as AddressInfo;
      return [names[i], `http://127.0.0.1:${port}/${names[i]}`];
    }),
  ) as Record<ReceiverName, string>;
  return {
    urls,
    order,
    taken,
    setDown: (next) => void (isDown = next),
    close: async () => void (await Promise.all(servers.map(close))),
  };

  /** The same one again is a repetition, which is allowed. */
  function note(sequence: number): void {
    if (sequence > order.received + 1) order.isInOrder = false;
    order.received = Math.max(order.received, sequence);
  }
}

/** Which numbers came, in a bit each: it may run for a day. */
class Seen {
  #bits = new Uint8Array(1024);

  /** False: it was there before. */
  add(number: number): boolean {
    const place = number >>> 3;
    if (place >= this.#bits.length) {
      const larger = new Uint8Array(Math.max(place + 1, this.#bits.length * 2));
      larger.set(this.#bits);
      this.#bits = larger;
    }
    const bit = 1 << (number & 7);
    const isNew = (this.#bits[place]! & bit) === 0;
    this.#bits[place]! |= bit;
    return isNew;
  }
}

interface Answer {
  status: number;
  retryAfterS?: number;
}

function listen(answer: (order: Order) => Answer): Promise<Server> {
  const server = createServer((request, response) => {
    void reply(request, response, answer);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

async function reply(
  request: IncomingMessage,
  response: ServerResponse,
  answer: (order: Order) => Answer,
): Promise<void> {
  try {
    const { status, retryAfterS } = answer(JSON.parse(await text(request)) as Order);
    const wait = retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) };
    response.writeHead(status, wait).end(status === 500 ? 'it broke on this message' : '');
  } catch {
    // Cut off in the middle, or no JSON: whoever sent it finds out by the status.
    response.writeHead(400).end();
  }
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
