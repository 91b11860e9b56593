import type { TaskFault } from '../../errors.ts';

const MAX_LENGTH = 8192;

/** What is wrong with the URL of a destination; undefined: nothing. Its address is checked when it is connected to. */
export function checkUrl(url: unknown): TaskFault | undefined {
  const parsed = typeof url === 'string' ? URL.parse(url) : null;
  if (typeof url !== 'string' || !parsed) {
    return fault('NO_DESTINATION', 'is not a URL. Write it in full: https://example.com/hook');
  }
  if (url.length > MAX_LENGTH) {
    return fault('INVALID_TASK', `has ${url.length} characters, ${MAX_LENGTH} at most.`);
  }
  const { protocol, username, password, port } = parsed;
  if (protocol !== 'http:' && protocol !== 'https:') {
    return fault('NO_DESTINATION', `begins with '${protocol}', not with http: or https:`);
  }
  if (username || password) {
    return fault('INVALID_TASK', 'has credentials in it, which would be stored. Name a `secret`.');
  }
  return port === '0' ? fault('INVALID_TASK', 'has the port 0, where nobody can be.') : undefined;
}

function fault(code: TaskFault['code'], what: string): TaskFault {
  return { path: 'destination.address', code, message: `The URL ${what}` };
}
