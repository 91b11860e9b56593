import type { Decision } from 'redrive';
import type { Reason } from './model/task.ts';

/** What happens in an engine, as it happens. */
export type EngineEvent =
  | { type: 'accepted' | 'duplicate'; id: string; lane: string }
  | {
      type: 'started';
      id: string;
      lane: string;
      attempt: number;
      lateMs: number;
      /** Its last lease ended without a settle: this may be a duplicate. */
      again: boolean;
      /** The fencing token. */
      lease: number;
    }
  | { type: 'done' | 'taken'; id: string; lane: string; attempt: number }
  | {
      type: 'retry';
      id: string;
      lane: string;
      attempt: number;
      delayMs: number;
      decision?: Decision;
    }
  | { type: 'failed'; id: string; lane: string; attempt: number; reason: Reason }
  | { type: 'cancelled'; id: string; lane: string }
  /** A failure had arrived before it was settled: it waits again, with the new count. */
  | { type: 'rearmed'; id: string; lane: string; attempt: number }
  /** The inbox has four fifths of its limit, or all of it. Told once a minute; nothing open is deleted. */
  | { type: 'inboxFilling' | 'inboxFull'; open: number; maxItems: number }
  /** A bulk job ended, or stopped by itself. */
  | { type: 'jobEnded'; job: number; state: string; why?: string }
  /** Its lease was gone when it was to be settled: it is delivered once more, or was. */
  | { type: 'leaseLost'; id: string; lane: string; attempt: number };
