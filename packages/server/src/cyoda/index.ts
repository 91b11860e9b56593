/** Settings become a member of the Cyoda server that they name. */
import type { Logger } from 'pino';
import type { Clock } from 'redrive';
import type { Evaluator } from '../criteria/evaluator.ts';
import type { Settings } from '../settings/settings.ts';
import { type CyodaMember, createCyodaMember, type MemberObserver } from './member.ts';
import { tokenSource } from './token.ts';

interface Parts {
  evaluator: Evaluator;
  clock: Clock;
  log: Logger;
  observer: MemberObserver;
}

export function memberFor(url: string, settings: Settings, parts: Parts): CyodaMember {
  const { cyodaToken: token, cyodaTokenFile: tokenFile, cyodaTags, cyodaLegalEntity } = settings;
  return createCyodaMember({
    url,
    tokenSource: tokenSource({ token, tokenFile }),
    tags: cyodaTags,
    legalEntity: cyodaLegalEntity,
    ...parts,
  });
}
