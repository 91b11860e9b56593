/** The contract's RetryMessage as a client in any language writes it. Nothing of the service's own code is used here. */

export interface RetryFields {
  message_id: string;
  original_payload: Uint8Array;
  original_queue: string;
  error_reason?: string;
  retry_count?: number;
  max_retries?: number;
  next_retry_at_ms?: number;
  classification?: number;
}

/** By the numbers of the contract's table. */
export function protobuf(fields: Partial<RetryFields>): Buffer {
  const parts: Uint8Array[] = [];
  const bytes = (number: number, value: Uint8Array | string | undefined) => {
    if (value === undefined) return;
    const content = Buffer.from(value as Uint8Array);
    parts.push(varint((number << 3) | 2), varint(content.length), content);
  };
  const integer = (number: number, value: number | undefined) => {
    if (value !== undefined) parts.push(varint(number << 3), varint(value));
  };
  bytes(1, fields.message_id);
  bytes(2, fields.original_payload);
  bytes(3, fields.original_queue);
  bytes(4, fields.error_reason);
  integer(5, fields.retry_count);
  integer(6, fields.max_retries);
  integer(7, fields.next_retry_at_ms);
  integer(8, fields.classification);
  return Buffer.concat(parts);
}

/** With a base64 text for the payload, as most languages have it. */
export function json(fields: Partial<RetryFields>, others: object = {}): Buffer {
  const { original_payload: payload, ...rest } = fields;
  const text = payload && Buffer.from(payload).toString('base64');
  return Buffer.from(JSON.stringify({ ...rest, original_payload: text, ...others }));
}

/** A negative int32 is ten bytes long on this wire, sign and all. */
function varint(value: number): Buffer {
  let left = BigInt.asUintN(64, BigInt(value));
  const bytes: number[] = [];
  for (; left > 0x7fn; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(left)]);
}
