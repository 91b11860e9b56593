import { EngineError } from '../errors.ts';
import type { DelayQueueCapabilities } from '../ports/delay-queue.ts';

/** What a queue that is not open answers to every call but `open` and `close`. */
export function closedError(): EngineError {
  const message =
    'The delay queue is not open: open() was not called, or close() was. Call open() first.';
  return new EngineError('QUEUE_CLOSED', message);
}

/** What a queue answers to a call that needs a capability which it does not have. */
export function incapable(
  method: 'cancel' | 'depth',
  needs: keyof DelayQueueCapabilities,
): EngineError {
  const message = `This delay queue cannot ${method}: its capability \`${needs}\` is false. Ask \`capabilities\` first.`;
  return new EngineError('NOT_CAPABLE', message);
}
