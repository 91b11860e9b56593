/** Keeps room for new connections: those without a request under way make place when the limit is reached. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionLimits {
  /** Connections that are served like any other. */
  max: number;
  /** Further ones that are read, so that a health probe is answered even when all others are busy. */
  reserve: number;
  /** At the limit: how long a connection may take to send its request. */
  unfinishedMs: number;
  /** Requests under way on one connection: a client may send the next one before it has read an answer. */
  pipelined: number;
}

export const CONNECTIONS: ConnectionLimits = {
  max: 2000,
  reserve: 100,
  unfinishedMs: 1000,
  pipelined: 20,
};

interface Options extends ConnectionLimits {
  /** Milliseconds of a clock that never goes back. */
  now?: () => number;
  /** Called whenever the limit is met. */
  onFull?: () => void;
}

export class Connections {
  readonly #options: Required<Options>;
  /** All open connections, with the number of requests under way on each. */
  readonly #open = new Map<Socket, number>();
  /** Those that were answered and sent nothing since, the longest-idle first, with the bytes read until then. */
  readonly #idle = new Map<Socket, number>();
  /** Those whose request has not come in whole, the oldest first, and since when. */
  readonly #unfinished = new Map<Socket, number>();
  /** Those that came when no other could make room. */
  readonly #overLimit = new WeakSet<Socket>();

  constructor(options: Options) {
    this.#options = { now: () => performance.now(), onFull: () => undefined, ...options };
  }

  watch(server: Server): void {
    const { max, reserve } = this.#options;
    server.maxConnections = max + reserve;
    server.on('connection', (socket) => this.#add(socket));
    // Node dropped a connection over its own limit. The next one may find room.
    server.on('drop', () => void this.#makeRoom());
    // Before the app's own listener: from here on the connection must not be closed for another.
    server.prependListener('request', (request, response) => this.#begin(request, response));
  }

  /** Whether there is no room for more than a health probe on this connection. */
  isOverLimit(socket: Socket): boolean {
    return this.#overLimit.has(socket) && this.#open.size > this.#options.max;
  }

  /** Whether more requests came on this connection than are answered at once. */
  isCrowded(socket: Socket): boolean {
    return (this.#open.get(socket) ?? 0) > this.#options.pipelined;
  }

  #add(socket: Socket): void {
    if (this.#open.size >= this.#options.max && !this.#makeRoom()) this.#overLimit.add(socket);
    this.#open.set(socket, 0);
    this.#unfinished.set(socket, this.#options.now());
    socket.once('close', () => this.#remove(socket));
  }

  #remove(socket: Socket): void {
    this.#open.delete(socket);
    this.#idle.delete(socket);
    this.#unfinished.delete(socket);
  }

  #begin({ socket }: IncomingMessage, response: ServerResponse): void {
    const underway = this.#open.get(socket);
    if (underway === undefined) return;
    this.#open.set(socket, underway + 1);
    this.#idle.delete(socket);
    this.#unfinished.delete(socket);
    response.once('close', () => this.#end(socket));
  }

  #end(socket: Socket): void {
    const underway = this.#open.get(socket);
    // Undefined: the connection is closed already.
    if (underway === undefined) return;
    this.#open.set(socket, underway - 1);
    if (underway === 1) this.#idle.set(socket, socket.bytesRead);
  }

  /** Closes the connection that is needed least; false: all of them are needed. */
  #makeRoom(): boolean {
    this.#options.onFull();
    const socket = this.#spare();
    if (!socket) return false;
    this.#remove(socket);
    socket.destroy();
    return true;
  }

  /**
   * The longest-idle connection; without one the oldest of those that took too long to send their request. Under the limit
   * a request may take longer, but at the limit some thousand clients that send half a request would keep everybody out.
   */
  #spare(): Socket | undefined {
    const { now, unfinishedMs } = this.#options;
    const nowMs = now();
    for (const [socket, bytesRead] of this.#idle) {
      if (socket.bytesRead === bytesRead) return socket;
      // Node does not tell when a request begins. From the first look on it counts as unfinished.
      this.#idle.delete(socket);
      this.#unfinished.set(socket, nowMs);
    }
    for (const [socket, sinceMs] of this.#unfinished) {
      return nowMs - sinceMs >= unfinishedMs ? socket : undefined;
    }
    return undefined;
  }
}
