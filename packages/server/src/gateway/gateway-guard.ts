/** Who may use the gateway: by a token in one of the headers that clients send keys in; without tokens, this machine. */
import type { IncomingMessage } from 'node:http';
import { localCaller, tokenHolder } from '../http/guard.ts';
import { Problem } from '../http/problem.ts';
import type { Settings } from '../settings/settings.ts';
import { tokenHeaders } from './forwarded-headers.ts';

/** The name of the one who asks. Throws a problem where that is not allowed. */
type GatewayGuard = (request: IncomingMessage) => string;

const MAX_TOKEN = 512;

export function createGatewayGuard({ tokens }: Pick<Settings, 'tokens'>): GatewayGuard {
  if (tokens.length === 0) {
    return ({ method = '', headers }) => localCaller({ method, headers }).by;
  }
  const holderOf = tokenHolder(tokens);
  return (request) => {
    const shown = shownIn(request);
    const found = shown.map(holderOf).find((holder) => holder !== undefined);
    if (!found) {
      const how = shown.length === 0 ? 'Send a token' : 'This token is not known. Send one';
      throw new Problem('UNAUTHENTICATED', `${how}: Authorization: Bearer ...`, {
        headers: { 'www-authenticate': 'Bearer realm="redrive"' },
      });
    }
    if (found.role !== 'gateway' && found.role !== 'admin') {
      const message = `'${found.name}' has the role ${found.role}; the gateway needs the role gateway.`;
      throw new Problem('FORBIDDEN', message);
    }
    return found.name;
  };
}

function shownIn({ headers }: IncomingMessage): string[] {
  return tokenHeaders.flatMap((name) => {
    const text = String(headers[name] ?? '');
    const value = name === 'authorization' ? /^bearer +(.*)$/i.exec(text)?.[1] : text;
    const token = value?.trim() ?? '';
    return /^[\x21-\x7e]+$/.test(token) && token.length <= MAX_TOKEN ? [token] : [];
  });
}
