/** Those who follow the events over HTTP. Each holds a connection, so there are only so many, and none may fall far behind. */
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EventFeed } from '../service-context.ts';
import { securityHeaders } from './limits/limits.ts';
import { Problem } from './problem.ts';

const MAX_READERS = 100;
const MAX_BUFFERED_BYTES = 1024 * 1024;
const HEARTBEAT_MS = 15_000;

export class EventReaders {
  readonly #feed: EventFeed;
  readonly #open = new Set<ServerResponse>();
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(feed: EventFeed) {
    this.#feed = feed;
  }

  /** From now on the connection is theirs. */
  add(request: FastifyRequest, reply: FastifyReply): void {
    if (this.#open.size >= MAX_READERS) {
      throw new Problem(
        'TOO_MANY_READERS',
        `${MAX_READERS} follow the events already. Come back later.`,
      );
    }
    const lastEventId = request.headers['last-event-id'];
    reply.hijack();
    const { raw } = reply;
    // Nothing may happen here for long.
    request.raw.socket.setTimeout(0);
    raw.writeHead(200, { ...securityHeaders, 'content-type': 'text/event-stream; charset=utf-8' });
    raw.flushHeaders();
    this.#open.add(raw);
    this.#heartbeat ??= setInterval(() => this.#beat(), HEARTBEAT_MS).unref();
    const end = this.#feed.read(typeof lastEventId === 'string' ? lastEventId : undefined, (text) =>
      this.#write(raw, text),
    );
    raw.on('close', () => {
      end();
      this.#open.delete(raw);
      if (this.#open.size > 0) return;
      clearInterval(this.#heartbeat);
      this.#heartbeat = undefined;
    });
  }

  /** Says goodbye to all of them. */
  close(): void {
    for (const raw of this.#open) raw.end();
  }

  #write(raw: ServerResponse, text: string): void {
    if (raw.destroyed || raw.writableEnded) return;
    raw.write(text);
    // They may come back with the id of the last event they saw.
    if (raw.writableLength > MAX_BUFFERED_BYTES) raw.destroy();
  }

  #beat(): void {
    for (const raw of this.#open) this.#write(raw, ':\n\n');
  }
}
