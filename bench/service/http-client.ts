import { connect, type Socket } from 'node:net';

/**
 * Several connections that are kept, each with one request at a time, over bare sockets with bytes that are made once: the
 * client must not be what is measured.
 */
export class HttpClient implements AsyncDisposable {
  readonly connections: readonly Connection[];
  readonly #wanted: number;

  /** `wanted`: the status that every answer must have. */
  constructor(
    url: string,
    path: string,
    body: string,
    connections: number,
    wanted = 202,
    headers: Readonly<Record<string, string>> = {},
  ) {
    const { hostname, port, host } = new URL(url);
    const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${more.join('')}\r\n`;
    const request = Buffer.from(head + body);
    this.#wanted = wanted;
    this.connections = Array.from(
      { length: connections },
      () => new Connection(connect(Number(port), hostname), request),
    );
  }

  /** Asks over all connections for so long. Answers how many requests were answered, and the ms until the last of them was. */
  async ask(forMs: number): Promise<{ answers: number; tookMs: number }> {
    const startMs = performance.now();
    const line = async (connection: Connection) => {
      let answers = 0;
      for (; performance.now() - startMs < forMs; answers++) {
        const status = await connection.ask();
        if (status !== this.#wanted) throw new Error(`an answer has status ${status}`);
      }
      return answers;
    };
    const each = await Promise.all(this.connections.map(line));
    const answers = each.reduce((sum, one) => sum + one, 0);
    return { answers, tookMs: performance.now() - startMs };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.connections) connection.close();
  }
}

export class Connection {
  readonly #socket: Socket;
  readonly #request: Buffer;
  #rest: Buffer | undefined;
  #askedMs = 0;
  #isFirst = false;
  /** From the last request to the first byte of its answer. */
  firstByteMs = 0;
  #answer: ((status: number) => void) | undefined;
  #fail: ((error: Error) => void) | undefined;

  constructor(socket: Socket, request: Buffer) {
    this.#socket = socket.setNoDelay(true);
    this.#request = request;
    socket.on('data', (bytes) => this.#receive(bytes));
    socket.on('error', (error) => this.#fail?.(error));
    socket.on('close', () => this.#fail?.(new Error('the server closed the connection')));
  }

  ask(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#answer = resolve;
      this.#fail = reject;
      this.#askedMs = performance.now();
      this.#isFirst = true;
      this.#socket.write(this.#request);
    });
  }

  close(): void {
    this.#fail = undefined;
    this.#socket.destroy();
  }

  #receive(bytes: Buffer): void {
    if (this.#isFirst) this.firstByteMs = performance.now() - this.#askedMs;
    this.#isFirst = false;
    const all = this.#rest ? Buffer.concat([this.#rest, bytes]) : bytes;
    const response = readResponse(all);
    this.#rest = response ? undefined : all;
    if (response) this.#answer?.(response.status);
  }
}

const END_OF_HEAD = Buffer.from('\r\n\r\n');
/** No answer is asked for that has these bytes in it. */
const END_OF_CHUNKS = Buffer.from('\r\n0\r\n\r\n');

/** The status of the response that these bytes are, or nothing where they are not all of it. NaN: it has no length. */
export function readResponse(bytes: Buffer): { status: number } | undefined {
  const end = bytes.indexOf(END_OF_HEAD);
  if (end < 0) return undefined;
  const head = bytes.toString('latin1', 0, end);
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1]);
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
    const isWhole = bytes.subarray(-END_OF_CHUNKS.length).equals(END_OF_CHUNKS);
    return isWhole ? { status: Number(head.slice(9, 12)) } : undefined;
  }
  // Whoever asked objects to any status but the one it wants.
  if (Number.isNaN(length)) return { status: Number.NaN };
  if (bytes.length < end + END_OF_HEAD.length + length) return undefined;
  return { status: Number(head.slice(9, 12)) };
}
