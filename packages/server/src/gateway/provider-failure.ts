import type { Answer } from './answer.ts';

interface Details {
  /** As rules compare it (`connection_error`). */
  status?: string;
  /** An answer that is a failure only by its content. */
  answer?: Answer;
  cause?: unknown;
}

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
