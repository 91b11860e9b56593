import type { Answer } from './answer.ts';

interface Details {
  /** As rules compare it (`connection_error`). */
  status?: string;
  /** An answer that is a failure only by its content. */
  answer?: Answer;
  cause?: unknown;
}

/** The status of an attempt that ran out of time because the client did not send its body. No breaker counts a 4xx. */
export const CLIENT_STALLED = '408';

/** A provider gave no answer that can be used. Its message never has headers or bodies in it. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure';
  readonly code: string;
  /** As rules compare it. */
  readonly status: string;
  readonly answer: Answer | undefined;

  constructor(code: string, message: string, details: Details = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : {});
    this.code = code;
    this.status = details.status ?? 'connection_error';
    this.answer = details.answer;
  }

  [Symbol.dispose](): void {
    this.answer?.[Symbol.dispose]();
  }
}

const stalls = new WeakSet<object>();

/** This error of an attempt is the client's doing. */
export function blameClient(error: unknown): void {
  if (error instanceof Error) stalls.add(error);
}

/** The word of the gateway for an error; undefined: that of the router. */
export function statusOf(error: unknown): string | undefined {
  if (error instanceof ProviderFailure) return error.status;
  return error instanceof Error && stalls.has(error) ? CLIENT_STALLED : undefined;
}
