/** What is shown of values that have a secret in them. */

const SECRET_NAME = /pass|secret|token|key|auth/i;

/** A URL without its password, without secrets among its parameters, and with `path` only its origin. */
export function hiddenUrl(text: string, hide?: 'path'): string {
  const { first, others } = withFirstHost(text);
  const url = URL.parse(first);
  // A password that is not encoded may stand anywhere before the last @.
  if (!url || `${url.pathname}${url.search}${url.hash}`.includes('@')) {
    return text.includes('@') ? `***@${text.slice(text.lastIndexOf('@') + 1)}` : text;
  }
  // Without the slashes a host reads as a scheme: it is shown as it was typed, up to its parameters.
  if (hide === undefined && !/^[^/]+:\/\//.test(text)) return text.replace(/[?#].*$/s, '?***');
  if (hide === 'path') return `${url.protocol}//${url.host}/***`;
  const user = url.username === '' ? '' : `${url.username}${url.password === '' ? '' : ':***'}@`;
  const parameters = [...url.searchParams].map(
    ([name, value]) => `${name}=${SECRET_NAME.test(name) ? '***' : value}`,
  );
  const query = parameters.length > 0 ? `?${parameters.join('&')}` : '';
  return `${url.protocol}//${user}${url.host}${others}${url.pathname}${query}`;
}

/** MongoDB has URLs with several hosts, which no other URL has: the URL with the first one, and the rest of them. */
export function withFirstHost(text: string): { first: string; others: string } {
  const [, before = '', others = ''] =
    /^(mongodb:\/\/(?:[^/?#@]*@)?[^/?#,@]+)((?:,[^/?#,@]+)+)/i.exec(text) ?? [];
  return { first: before + text.slice(before.length + others.length), others };
}

/** Nothing of it but its kind and length. */
export function hidden(value: unknown): string {
  return typeof value === 'string' ? `a text of ${value.length} characters` : `a ${typeof value}`;
}
