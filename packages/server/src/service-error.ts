import type { ServerErrorCode } from './errors.ts';

export type ServiceErrorCode = Extract<
  ServerErrorCode,
  `${'SERVICE' | 'DATA' | 'CANNOT' | 'MOVE' | 'SCHEMA' | 'NODE'}_${string}`
>;

/** What keeps a service or its upkeep from going on, with a sentence that says what to do. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ServiceErrorCode;

  constructor(code: ServiceErrorCode, message: string, details: { cause?: unknown } = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : {});
    this.code = code;
  }
}
