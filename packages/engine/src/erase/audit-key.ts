/**
 * How SQL stores find the events of a message: by an index over a part of the event's text. So old events are found too,
 * and those of older programs that still run beside this one. A column would have to be filled for all of them.
 */

/** What stands before the id, as JSON.stringify writes it. The first one counts, as `messageIdOf` has it. */
export const MESSAGE_MARK = '"message_id":"';
/** A UUID has 36 characters. */
export const KEY_LENGTH = 64;

/** What the index has for an event of this message. Another message may have the same key: look at the event too. */
export function auditKeyOf(messageId: string): string {
  const written = Array.from(JSON.stringify(messageId).slice(1)).slice(0, KEY_LENGTH).join('');
  return written.split('"')[0]!;
}
