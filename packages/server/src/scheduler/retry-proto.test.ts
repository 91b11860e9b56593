import { readFileSync } from 'node:fs';
import { create, createFileRegistry, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt';
import { expect, it } from 'vitest';
import { encodeProtobuf, readRetryMessage, type RetryMessage } from './retry-message.ts';

const proto = readFileSync(new URL('../../proto/retry.proto', import.meta.url), 'utf8');

const types: Record<string, FieldDescriptorProto_Type> = {
  string: FieldDescriptorProto_Type.STRING,
  bytes: FieldDescriptorProto_Type.BYTES,
  int32: FieldDescriptorProto_Type.INT32,
  int64: FieldDescriptorProto_Type.INT64,
  Classification: FieldDescriptorProto_Type.ENUM,
};

/** The message as `proto/retry.proto` has it, for somebody else's encoder. */
function schema() {
  const fields = [...proto.matchAll(/^ {2}(\w+) (\w+) = (\d+);$/gm)].map(
    ([, type, name, number]) => ({
      name: name!,
      number: Number(number),
      type: types[type!]!,
      label: FieldDescriptorProto_Label.OPTIONAL,
      ...(type === 'Classification' ? { typeName: '.Classification' } : {}),
    }),
  );
  const values = [...proto.matchAll(/^ {2}([A-Z]+) = (\d+);$/gm)].map(([, name, number]) => ({
    name: name!,
    number: Number(number),
  }));
  const file = create(FileDescriptorProtoSchema, {
    name: 'retry.proto',
    syntax: 'proto3',
    messageType: [{ name: 'RetryMessage', field: fields }],
    enumType: [{ name: 'Classification', value: values }],
  });
  return createFileRegistry(file, () => undefined).getMessage('RetryMessage')!;
}

const message: RetryMessage = {
  messageId: '0f6f9a0e-1f3b-4c8e-9a53-6f2f8e3f1a11',
  originalPayload: new Uint8Array([1, 2, 3]),
  originalQueue: 'orders',
  errorReason: 'läuft nicht',
  retryCount: 2,
  maxRetries: 7,
  nextRetryAtMs: 1_800_000_000_000,
  classification: 'TECHNICAL',
};

const sameByOther = {
  messageId: message.messageId,
  originalPayload: message.originalPayload,
  originalQueue: 'orders',
  errorReason: 'läuft nicht',
  retryCount: 2,
  maxRetries: 7,
  nextRetryAtMs: 1_800_000_000_000n,
  classification: 2,
};

it('the contract has eight fields and four classifications', () => {
  const { fields } = schema();
  expect(fields.map(({ name, number }) => `${name} ${number}`)).toEqual([
    'message_id 1',
    'original_payload 2',
    'original_queue 3',
    'error_reason 4',
    'retry_count 5',
    'max_retries 6',
    'next_retry_at_ms 7',
    'classification 8',
  ]);
});

it('what another implementation encodes by the proto file is read', () => {
  const bytes = toBinary(schema(), create(schema(), sameByOther as Record<string, unknown>));
  const reading = readRetryMessage(bytes, 'application/x-protobuf');
  expect(reading).toEqual({ type: 'message', message });
});

it('another implementation reads what is encoded here', () => {
  const other = fromBinary(schema(), encodeProtobuf(message));
  expect(other).toMatchObject(sameByOther);
});
