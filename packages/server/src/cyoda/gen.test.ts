import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import {
  CloudEvent_CloudEventAttributeValueSchema,
  CloudEventSchema,
} from './gen/cloudevents_pb.ts';
import { CloudEventsService } from './gen/cyoda_pb.ts';

it.each(['cloudevents', 'cyoda'])(
  'the code of %s.proto was made from the file as it is',
  (name) => {
    const proto = readFileSync(new URL(`../../proto/${name}.proto`, import.meta.url));
    const code = readFileSync(new URL(`gen/${name}_pb.ts`, import.meta.url), 'utf8');
    const hash = createHash('sha256').update(proto).digest('hex');
    expect(code.split('\n')[0], 'run npm run protocol').toBe(`// ${name}.proto sha256:${hash}`);
  },
);

it('an event has the fields of CloudEvents by their numbers', () => {
  const numbers = ({ fields }: { fields: readonly { name: string; number: number }[] }) =>
    fields.map(({ name, number }) => `${name} ${number}`);
  expect(CloudEventSchema.typeName).toBe('io.cloudevents.v1.CloudEvent');
  expect(numbers(CloudEventSchema)).toEqual([
    'id 1',
    'source 2',
    'spec_version 3',
    'type 4',
    'attributes 5',
    'binary_data 6',
    'text_data 7',
    'proto_data 8',
  ]);
  expect(numbers(CloudEvent_CloudEventAttributeValueSchema)).toEqual([
    'ce_boolean 1',
    'ce_integer 2',
    'ce_string 3',
    'ce_bytes 4',
    'ce_uri 5',
    'ce_uri_ref 6',
    'ce_timestamp 7',
  ]);
});

it('the service streams in both directions under the name that Cyoda has', () => {
  const { typeName, method } = CloudEventsService;
  expect(typeName).toBe('org.cyoda.cloud.api.grpc.CloudEventsService');
  expect(method.startStreaming).toMatchObject({
    name: 'startStreaming',
    methodKind: 'bidi_streaming',
  });
});
