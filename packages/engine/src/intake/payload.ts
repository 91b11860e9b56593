/** A payload as it is stored. */
import { type JsonLoss, jsonLoss } from 'redrive/internal';
import { EngineError, type EngineErrorCode } from '../errors.ts';

/** The payload as bytes: bytes as they are, anything else as JSON. */
export function bytesOf(payload: unknown, maxBytes: number): Uint8Array {
  let bytes: Uint8Array;
  if (payload instanceof Uint8Array) bytes = payload;
  else {
    const kind = typeof payload;
    if (kind === 'function' || kind === 'symbol') {
      throw refused('INVALID_PAYLOAD', 'payload', `JSON cannot hold a ${kind}. Submit data.`);
    }
    let json: string | undefined;
    let lost: JsonLoss | undefined;
    try {
      json = JSON.stringify(payload);
      lost = jsonLoss(payload);
    } catch (error) {
      throw refused(
        'INVALID_PAYLOAD',
        'payload',
        `The payload cannot be written as JSON: ${unwritable(error)} Submit what JSON can hold, or bytes.`,
      );
    }
    if (lost) throw refusedLoss(lost);
    bytes = json === undefined ? new Uint8Array() : Buffer.from(json);
  }
  if (bytes.length > maxBytes) {
    throw refused(
      'PAYLOAD_TOO_LARGE',
      'payload',
      `The payload has ${bytes.length} bytes; the limit is ${maxBytes}. Keep it elsewhere and submit a reference, or raise maxPayloadBytes.`,
    );
  }
  // A copy of the caller's own, who may change it before it is stored. Not by slice: that of a Buffer copies nothing.
  return bytes === payload ? new Uint8Array(bytes) : bytes;
}

function refusedLoss({ lost, path }: JsonLoss): EngineError {
  const message = lost.startsWith('a ')
    ? `JSON cannot hold ${lost}: it would arrive as {}. Submit an array or an object.`
    : `JSON cannot hold ${lost}: it would arrive as null. Submit null, or a text.`;
  return refused('INVALID_PAYLOAD', path === '' ? 'payload' : `payload.${path}`, message);
}

/** Why a value cannot be written as JSON. The platform's own words for a deep value are about its call stack. */
export function unwritable(error: unknown): string {
  if (error instanceof RangeError) return 'it is nested too deep.';
  const [first = ''] = String(error instanceof Error ? error.message : error).split('\n');
  return `${first.replace(/\.$/, '')}.`;
}

function refused(code: EngineErrorCode, path: string, message: string): EngineError {
  return new EngineError(code, message, { faults: [{ path, code, message }] });
}
