/** The connections that deliveries share: kept alive for a while, never more than the limit. */
import * as http from 'node:http';
import * as https from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SecureContextOptions } from 'node:tls';

/** For servers that ask for a certificate, or have one of a private authority. */
export type Tls = Pick<SecureContextOptions, 'ca' | 'cert' | 'key' | 'passphrase'>;

interface ConnectionSettings {
  maxConnections: number;
  maxConnectionsPerOrigin: number;
  idleMs: number;
  tls: Tls;
  lookup: LookupFunction;
}

export class Connections {
  readonly #agents: { 'http:': http.Agent; 'https:': https.Agent };
  readonly #max: number;
  #open = 0;
  /** With their origins, the one that is idle for longest first. */
  readonly #idle = new Map<Duplex, string>();
  readonly #links = new WeakMap<Duplex, { origin: string; ready: boolean }>();

  constructor(settings: ConnectionSettings) {
    const { maxConnections, maxConnectionsPerOrigin, idleMs, tls, lookup } = settings;
    const shared = {
      keepAlive: true,
      maxSockets: maxConnectionsPerOrigin,
      maxFreeSockets: maxConnectionsPerOrigin,
      timeout: idleMs,
      autoSelectFamily: true,
      lookup,
    };
    this.#max = maxConnections;
    this.#agents = {
      'http:': this.#watched(new http.Agent(shared), 'connect'),
      'https:': this.#watched(new https.Agent({ ...shared, ...tls }), 'secureConnect'),
    };
  }

  /** Headers are a flat list of names and values, complete. `path` goes out as it is written. */
  request(
    url: URL,
    method: string,
    headers: readonly string[],
    path: string = url.pathname + url.search,
  ): http.ClientRequest {
    const isSecure = url.protocol === 'https:';
    const options: http.RequestOptions & { origin: string } = {
      agent: this.#agents[isSecure ? 'https:' : 'http:'],
      method,
      headers,
      // In a URL, and only there, an IPv6 address has brackets.
      host: url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname,
      port: url.port,
      path,
      origin: url.origin,
    };
    return isSecure ? https.request(options) : http.request(options);
  }

  /** Whether the other side can have got anything of this request. */
  reached(request: http.ClientRequest): boolean {
    return request.socket !== null && this.#links.get(request.socket)?.ready === true;
  }

  /** The next request to this origin gets a new connection. */
  dropIdle(origin: string): void {
    for (const [socket, of] of this.#idle) if (of === origin) socket.destroy();
  }

  close(): void {
    this.#agents['http:'].destroy();
    this.#agents['https:'].destroy();
  }

  #watched<A extends http.Agent>(agent: A, readyEvent: 'connect' | 'secureConnect'): A {
    const create = agent.createConnection.bind(agent);
    // It answers whether the socket can be kept, which its type does not say.
    const keep: (socket: Duplex) => unknown = agent.keepSocketAlive.bind(agent);
    const reuse = agent.reuseSocket.bind(agent);

    agent.createConnection = (options, callback) => {
      // An idle connection to one origin must not keep another from being served.
      const [oldest] = this.#idle.keys();
      if (oldest && this.#open >= this.#max) oldest.destroy();
      const socket = create(options, callback);
      if (!socket) return socket;
      const link = { origin: (options as { origin?: string }).origin ?? '', ready: false };
      this.#links.set(socket, link);
      this.#open++;
      socket.once(readyEvent, () => {
        link.ready = true;
      });
      socket.once('close', () => {
        this.#open--;
        this.#idle.delete(socket);
      });
      return socket;
    };
    agent.keepSocketAlive = (socket) => {
      const kept = keep(socket);
      if (kept) this.#idle.set(socket, this.#links.get(socket)?.origin ?? '');
      return kept;
    };
    agent.reuseSocket = (socket, request) => {
      this.#idle.delete(socket);
      reuse(socket, request);
    };
    return agent;
  }
}
