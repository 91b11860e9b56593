import { createHash } from 'node:crypto';
import type { StickyStore } from 'redrive';

/** Sticky sessions of routers outside of this process, so that several instances share them. */
export interface SharedStickyStore extends StickyStore {
  /** Lets go of its connections. Later calls reject. */
  close(): Promise<void>;
}

export interface SharedStickyOptions {
  /** The wall clock in ms (`Date.now`). Sessions expire by it. */
  now?: (() => number) | undefined;
}

/** What a session is found by. A key has the tenant and the value of the session, which may tell of a person. */
export function sessionId(key: string): string {
  return createHash('sha256').update(key).digest('base64url');
}

/** How often a store deletes expired sessions, and how many at once. */
export const PRUNE_EVERY_MS = 60_000;
export const PRUNE_AT_ONCE = 1000;
