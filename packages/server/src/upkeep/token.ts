import { createHash, randomBytes } from 'node:crypto';
import type { Role } from '../settings/settings.ts';

/** A new token. Nobody but who asked for it ever has it: the service knows only its hash. */
export interface NewToken {
  name: string;
  role: Role;
  token: string;
  sha256: string;
  /** What goes into `REDRIVE_TOKENS`. */
  entry: string;
}

/** 256 bits, so that the plain hash of one says nothing. The prefix lets scanners of repositories find one that leaked. */
export function makeToken(name: string, role: Role): NewToken {
  const token = `redrive_${randomBytes(32).toString('base64url')}`;
  const sha256 = createHash('sha256').update(token).digest('hex');
  return { name, role, token, sha256, entry: `${name}:${role}:${sha256}` };
}
