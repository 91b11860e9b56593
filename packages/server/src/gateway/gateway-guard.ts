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
    let isShown = false;
    let found: ReturnType<typeof holderOf>;
    for (const name of tokenHeaders) {
      const token = tokenIn(request, name);
      if (token === undefined) continue;
      isShown = true;
      found ??= holderOf(token);
    }
    if (!found) {
      const how = isShown ? 'This token is not known. Send one' : 'Send a token';
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

function tokenIn(
  { headers }: IncomingMessage,
  name: (typeof tokenHeaders)[number],
): string | undefined {
  const text = headers[name];
  if (typeof text !== 'string') return undefined;
  const value = name === 'authorization' ? /^bearer +(.*)$/i.exec(text)?.[1] : text;
  const token = value?.trim() ?? '';
  return token.length <= MAX_TOKEN && /^[\x21-\x7e]+$/.test(token) ? token : undefined;
}
