/**
 * The messages by which runtimes report a network error. By the standard such an error is a `TypeError` without a code, so
 * only its message tells it from a mistake in the program. `docs/reference/network-errors.md` has the source of each; a
 * test checks that the page and this list are the same.
 *
 * Each entry is a whole message; `*` stands for any text.
 */
const networkMessages: readonly string[] = [
  // Chrome, Edge, Electron
  'Failed to fetch',
  'network error',
  // Firefox
  'NetworkError when attempting to fetch resource.',
  'Error in input stream',
  'Error in body stream',
  // Safari
  'Load failed',
  'The Internet connection appears to be offline.',
  'The network connection was lost.',
  'A server with the specified hostname could not be found.',
  'Could not connect to the server.',
  'The request timed out.',
  // React Native
  'Network request failed',
  'Network request timed out',
  // Node.js
  'fetch failed',
  'terminated',
  // Deno
  'error sending request for url *',
  'error sending request from *',
  'error reading a body from connection*',
  'error decoding response body*',
  'request or response body error*',
  // Bun
  'A network error occurred.',
  'Unable to connect. Is the computer able to access the url?',
  'The socket connection was closed unexpectedly.*',
  // Cloudflare Workers
  'Network connection lost',
  'Network connection lost.',
];

let pattern: RegExp | undefined;

/** Whether a message is one of these. Chrome and Sentry append the host: `Failed to fetch (example.com)`. */
export function isNetworkMessage(message: string): boolean {
  pattern ??= new RegExp(
    `^ ?(?:${networkMessages
      .map((text) => text.replace(/[.?]/g, '\\$&').replace('*', '[^]*'))
      .join('|')})(?: \\([^()]*\\))?$`,
  );
  return pattern.test(message);
}

/** Deno's words for a request that was never sent, since there was no connection. */
export function neverConnected(message: string): boolean {
  return message.includes('client error (Connect)');
}
