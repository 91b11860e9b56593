/** The limit of the gRPC case: a member on the same transport that sends every event back as it came. */
import { create } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import {
  type CloudEvent,
  CloudEventSchema,
} from '../../../packages/server/src/cyoda/gen/cloudevents_pb.ts';
import { CloudEventsService } from '../../../packages/server/src/cyoda/gen/cyoda_pb.ts';

const [url = ''] = process.argv.slice(2);
const transport = createGrpcTransport({
  baseUrl: url.replace('grpc:', 'http:'),
  acceptCompression: [],
});
const join = create(CloudEventSchema, { id: 'join', type: 'join' });
const queue: CloudEvent[] = [join];
let head = 0;
let wanted: ((result: IteratorResult<CloudEvent>) => void) | undefined;

function send(event: CloudEvent): void {
  if (wanted) wanted({ done: false, value: event });
  else queue.push(event);
  wanted = undefined;
}

function next(): Promise<IteratorResult<CloudEvent>> {
  const value = queue[head];
  if (value) {
    head += 1;
    if (head === queue.length) head = queue.length = 0;
    return Promise.resolve({ done: false, value });
  }
  return new Promise((resolve) => {
    wanted = resolve;
  });
}

// The transport insists on a `throw`.
const iterator = {
  next,
  async throw(error: unknown): Promise<never> {
    throw error;
  },
};
const outgoing = { [Symbol.asyncIterator]: () => iterator };
for await (const event of createClient(CloudEventsService, transport).startStreaming(outgoing)) {
  send(event);
}
