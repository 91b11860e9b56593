/** Tells the harmless beginning of an event stream from its content, so that a fallback stays possible until the content. */

type Verdict = { kind: 'harmless' } | { kind: 'content' } | { kind: 'error'; status: number };

/** A preamble that is longer counts as content: what is held back must stay small. */
const MAX_BYTES = 64 * 1024;

const harmless: Verdict = { kind: 'harmless' };
const content: Verdict = { kind: 'content' };

/** Events that begin a stream and say nothing yet. */
const opening = new Set([
  'ping',
  'message_start',
  'response.created',
  'response.queued',
  'response.in_progress',
]);

const errorStatuses: Readonly<Record<string, number>> = {
  rate_limit_error: 429,
  overloaded_error: 529,
};

export class EventPreamble {
  #text = '';

  /** What the stream is, with these bytes. After `content` or `error` nobody asks again. */
  add(bytes: Buffer): Verdict {
    // Bytes stay bytes: nothing of this is handed on, and all that is compared is ASCII.
    this.#text += bytes.toString('latin1');
    if (this.#text.length > MAX_BYTES) return content;
    for (;;) {
      const end = /\r\n\r\n|\n\n|\r\r/.exec(this.#text);
      if (!end) return harmless;
      const verdict = judge(this.#text.slice(0, end.index));
      if (verdict.kind !== 'harmless') return verdict;
      this.#text = this.#text.slice(end.index + end[0].length);
    }
  }
}

function judge(event: string): Verdict {
  let name = '';
  const data: string[] = [];
  for (const line of event.split(/\r\n|\n|\r/)) {
    const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (field === 'event') name = value;
    if (field === 'data') data.push(value);
  }
  if (data.length === 0) return harmless;
  const parsed = objectIn(data.join('\n'));
  if (name === '' && typeof parsed?.['type'] === 'string') name = parsed['type'];
  const error = objectOf(parsed?.['error']);
  if (name === 'error' || name === 'response.failed' || (name === '' && error)) {
    return { kind: 'error', status: statusOf(error ?? parsed) };
  }
  return opening.has(name) || isRoleOnly(parsed) ? harmless : content;
}

/** The first chunk of a chat completion has the role of the speaker and no word yet. */
function isRoleOnly(parsed: Record<string, unknown> | undefined): boolean {
  const choices = parsed?.['choices'];
  if (!Array.isArray(choices) || choices.length === 0) return false;
  return choices.every((choice: unknown) => {
    const { delta, finish_reason: reason } = objectOf(choice) ?? {};
    const rest = Object.entries(objectOf(delta) ?? { missing: true });
    return reason == null && rest.every(([key, value]) => key === 'role' || isEmpty(value));
  });
}

function isEmpty(value: unknown): boolean {
  return value === '' || value == null;
}

function statusOf(error: Record<string, unknown> | undefined): number {
  for (const value of [error?.['status'], error?.['code']]) {
    if (Number.isInteger(value) && Number(value) >= 400 && Number(value) < 600)
      return Number(value);
  }
  return errorStatuses[String(error?.['type'])] ?? 500;
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    return objectOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function objectOf(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}
