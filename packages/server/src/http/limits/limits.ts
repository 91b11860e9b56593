/** How much and how long anybody may ask; and what a browser may do with an answer. */
import type { Server } from 'node:http';
import type { FastifyHttpOptions, FastifyRequest } from 'fastify';
import type { Settings } from '../../settings/settings.ts';

const MAX_HEADER_BYTES = 16 * 1024;
const HEADERS_MS = 10_000;
const LOOK_MS = 5000;
/** Names of lanes have up to 512 bytes, each of which may be written as %XX. */
const MAX_PARAM = 1600;

/** One whose socket neither sends nor takes anything is cut off. */
export function serverOptions({ maxRequestBytes, requestTimeoutMs }: Settings) {
  return {
    bodyLimit: maxRequestBytes,
    requestTimeout: requestTimeoutMs,
    connectionTimeout: requestTimeoutMs * 2,
    // Answered by the guard, as a problem like every other.
    return503OnClosing: false,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: MAX_PARAM },
    http: {
      // Refused by a hook: what Node answers by itself is no problem document.
      requireHostHeader: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: Math.min(HEADERS_MS, requestTimeoutMs),
      connectionsCheckingInterval: LOOK_MS,
    },
  } as const satisfies FastifyHttpOptions<Server>;
}

/** Whether a probe asks how the service is. */
export function isHealth({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.url?.startsWith('/health/') === true;
}

/** What comes from here is data: never a page, never kept, never put into a frame. */
export const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;
