import { olderNode } from 'redrive/internal';
import { EngineError } from './errors.ts';

/** As `engines` of package.json says. */
const NEEDED = '22.16';

/** Says which Node is needed, in place of an error about whatever an older one lacks first. */
export function checkNode(what: string): void {
  const message = olderNode(what, NEEDED, process.versions.node);
  if (message !== undefined) throw new EngineError('NODE_TOO_OLD', message);
}
