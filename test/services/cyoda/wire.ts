/**
 * CloudEvents and gRPC frames byte by byte, from the numbers in the protocol's description. On purpose without the code
 * that the member uses: a wrong field number there must not agree with itself here.
 */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

export interface WireEvent {
  id: string;
  source: string;
  specVersion: string;
  type: string;
  /** Names of attributes. */
  attributes: string[];
  text?: string;
  bytes?: Uint8Array;
}

export function encodeEvent(
  event: Omit<WireEvent, 'attributes'>,
  attributes: Readonly<Record<string, string>> = {},
): Uint8Array {
  const writer = new BinaryWriter();
  const text = (field: number, value: string) =>
    writer.tag(field, WireType.LengthDelimited).string(value);
  text(1, event.id);
  text(2, event.source);
  text(3, event.specVersion);
  text(4, event.type);
  for (const [name, value] of Object.entries(attributes)) {
    writer.tag(5, WireType.LengthDelimited).fork();
    text(1, name);
    writer.tag(2, WireType.LengthDelimited).fork();
    text(3, value);
    writer.join().join();
  }
  if (event.bytes) writer.tag(6, WireType.LengthDelimited).bytes(event.bytes);
  if (event.text !== undefined) text(7, event.text);
  return writer.finish();
}

export function decodeEvent(bytes: Uint8Array): WireEvent {
  const event: WireEvent = { id: '', source: '', specVersion: '', type: '', attributes: [] };
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 1) event.id = reader.string();
    else if (field === 2) event.source = reader.string();
    else if (field === 3) event.specVersion = reader.string();
    else if (field === 4) event.type = reader.string();
    else if (field === 5) event.attributes.push(attributeName(reader.bytes()));
    else if (field === 6) event.bytes = reader.bytes();
    else if (field === 7) event.text = reader.string(true);
    else reader.skip(wireType, field);
  }
  return event;
}

function attributeName(entry: Uint8Array): string {
  const reader = new BinaryReader(entry);
  const [field] = reader.tag();
  return field === 1 ? reader.string() : '';
}

/** A message of gRPC: not compressed, its length in four bytes, and the message. */
export function frame(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Cuts a stream of bytes into messages. */
export class Unframer {
  #chunks: Buffer[] = [];
  #length = 0;

  add(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    const messages: Buffer[] = [];
    let bytes = this.#length >= 5 ? Buffer.concat(this.#chunks) : undefined;
    while (bytes && bytes.length >= 5) {
      const end = 5 + bytes.readUInt32BE(1);
      if (bytes.length < end) break;
      if (bytes[0] !== 0) throw new Error('a member sent a compressed message');
      messages.push(bytes.subarray(5, end));
      bytes = bytes.subarray(end);
    }
    if (bytes) {
      this.#chunks = [bytes];
      this.#length = bytes.length;
    }
    return messages;
  }
}
