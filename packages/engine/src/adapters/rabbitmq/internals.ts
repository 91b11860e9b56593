/**
 * What amqplib knows and does not give away. Each is looked for and not relied on: without it a message loses the types of its
 * headers, or a dead socket lives a while longer. A test says whether the installed version has them.
 */
import type { ChannelModel, MessageProperties } from 'amqplib';

/** What RabbitMQ has unless it is told otherwise. */
const USUAL_FRAME_BYTES = 131_072;
const CONTENT_HEADER = 2;
const BASIC_CLASS = 60;
const HAS_CONTENT_TYPE = 0x8000;
const HAS_CONTENT_ENCODING = 0x4000;
const HAS_HEADERS = 0x2000;

interface Internals {
  frameMax?: number;
  /** Bytes that were received and not looked at yet. */
  rest?: Buffer;
  recvFrame?: () => unknown;
  stream?: { destroy?: () => void; cork?: () => void; uncork?: () => void };
  /** Brings what the channels have to say to the socket. */
  muxer?: { _readIncoming?: () => void };
}

/** The largest frame that both sides agreed on. */
export function frameBytesOf(model: ChannelModel): number {
  return internalsOf(model).frameMax ?? USUAL_FRAME_BYTES;
}

/** Ends the socket at once: amqplib waits for what it has written, which on a dead connection is for ever. */
export function destroySocket(model: ChannelModel): void {
  internalsOf(model).stream?.destroy?.();
}

/** From now on what is said at one moment goes out at once: amqplib would ask the system for each message by itself. */
export function writeTogether(model: ChannelModel): void {
  const { muxer, stream } = internalsOf(model);
  const write = muxer?._readIncoming;
  if (!muxer || !write || !stream?.cork || !stream.uncork) return;
  muxer._readIncoming = () => {
    stream.cork!();
    try {
      write.call(muxer);
    } finally {
      stream.uncork!();
    }
  };
}

/**
 * From now on the properties of each message know the bytes of its headers. Headers that amqplib cannot read, such as tables
 * in tables without end, do not end the connection any more, over and over again with the same message: they are empty then.
 */
export function keepTables(model: ChannelModel): void {
  const connection = internalsOf(model);
  const receive = connection.recvFrame;
  if (!receive || !Buffer.isBuffer(connection.rest)) return;
  let calls = 0;
  connection.recvFrame = function recvFrame(this: Internals): unknown {
    const before = this.rest!;
    calls += 1;
    const call = calls;
    let frame: unknown;
    try {
      frame = receive.call(this);
    } catch (error) {
      // Only where it has taken the frame out: otherwise it would be met again at once.
      frame = this.rest === before ? undefined : frameWithoutHeaders(before);
      if (!frame) throw error;
    }
    // It calls itself once it has read more, and then only that call has seen the whole frame.
    if (call === calls) keepTable(frame, before);
    return frame;
  };
}

export function tableOf(properties: MessageProperties): Uint8Array | undefined {
  return (properties as { [TABLE]?: Uint8Array })[TABLE];
}

const TABLE = Symbol('the bytes of its headers');

function internalsOf({ connection }: ChannelModel): Internals {
  return connection as unknown as Internals;
}

function keepTable(frame: unknown, bytes: Buffer): void {
  const { id, fields } = Object(frame) as { id?: number; fields?: object };
  const table = id === BASIC_CLASS && fields ? tableIn(bytes) : undefined;
  if (table) Object.defineProperty(fields, TABLE, { value: table });
}

/** The header table of the content header that these bytes begin with. */
function tableIn(bytes: Buffer): Buffer | undefined {
  // Type, channel and size of the frame; class, weight and size of the content; flags.
  const flags = bytes.readUInt16BE(19);
  if (!(flags & HAS_HEADERS)) return undefined;
  let at = 21;
  if (flags & HAS_CONTENT_TYPE) at += 1 + bytes[at]!;
  if (flags & HAS_CONTENT_ENCODING) at += 1 + bytes[at]!;
  return bytes.subarray(at + 4, at + 4 + bytes.readUInt32BE(at));
}

function frameWithoutHeaders(bytes: Buffer): object | undefined {
  const isWhole = bytes.length >= 8 && bytes.length >= 8 + bytes.readUInt32BE(3);
  if (!isWhole || bytes[0] !== CONTENT_HEADER || bytes.readUInt16BE(7) !== BASIC_CLASS) {
    return undefined;
  }
  const size = Number(bytes.readBigUInt64BE(11));
  return { id: BASIC_CLASS, channel: bytes.readUInt16BE(1), size, fields: {} };
}
