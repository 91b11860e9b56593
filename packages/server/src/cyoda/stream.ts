/** One gRPC stream to a Cyoda server, over a connection of its own. */
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { baseUrlOf, Connection, type TlsOptions } from './connection.ts';
import type { CloudEvent } from './gen/cloudevents_pb.ts';
import { CloudEventsService } from './gen/cyoda_pb.ts';

export interface Stream {
  readonly events: AsyncIterable<CloudEvent>;
  /** Cuts the stream and its connection. Safe to call again. */
  cut(): void;
}

export type OpenStream = (outgoing: AsyncIterable<CloudEvent>, token: string | undefined) => Stream;

/** Beyond this the transport ends the stream. Up to here a request that is too large gets an answer. */
const MAX_EVENT_BYTES = 64 * 1024 * 1024;

/** Each stream has a new connection: a dead HTTP/2 session would be used again otherwise. */
export function grpcStreams(url: string, tls: TlsOptions = {}): OpenStream {
  const baseUrl = baseUrlOf(url);
  return (outgoing, token) => {
    const abort = new AbortController();
    const connection = new Connection(baseUrl, tls, () => abort.abort());
    const transport = createGrpcTransport({
      baseUrl,
      sessionManager: connection,
      readMaxBytes: MAX_EVENT_BYTES,
      // A member on the same network gains nothing by it, and decompressing costs more than an evaluation.
      acceptCompression: [],
    });
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const events = createClient(CloudEventsService, transport).startStreaming(outgoing, {
      headers,
      signal: abort.signal,
    });
    return {
      events,
      cut() {
        abort.abort();
        connection.close();
      },
    };
  };
}
