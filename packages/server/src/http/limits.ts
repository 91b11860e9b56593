/** How much, how often and how long anybody may ask; and what a browser may do with an answer. */
import type { Server } from 'node:http';
import type { FastifyHttpOptions, FastifyRequest } from 'fastify';
import { normalizeIP, type RateLimitPluginOptions } from '@fastify/rate-limit';
import type { Settings } from '../settings/settings.ts';
import { Problem } from './problem.ts';

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

export function rateOptions(settings: Settings): RateLimitPluginOptions {
  const { rateLimit, criterionRateLimit } = settings;
  return {
    global: false,
    max: (request) => (isCriterion(request) ? criterionRateLimit : rateLimit),
    timeWindow: 1000,
    // Criteria are asked thousands of times a second, and have a count of their own.
    keyGenerator: (request) => `${isCriterion(request) ? 'c' : ''}${networkOf(request.ip)}`,
    // A probe must not be shut out when the service is busy. With a token it counts: a token could be guessed here too.
    allowList: (request) => isHealth(request) && request.headers.authorization === undefined,
    addHeadersOnExceeding: none,
    addHeaders: none,
    errorResponseBuilder: (_, { max, ttl }) =>
      new Problem(
        'RATE_LIMITED',
        `More than ${max} requests in a second. Send many in one: {items}.`,
        {
          headers: { 'retry-after': String(Math.max(1, Math.ceil(ttl / 1000))) },
        },
      ),
  };
}

/** By network where it is IPv6, which anybody has plenty of. To find that out costs more than to look for a colon. */
function networkOf(ip: string): string {
  return ip.includes(':') ? normalizeIP(ip) : ip;
}

function isCriterion({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.url === '/api/v1/criteria/:name';
}

/** Whether a probe asks how the service is. */
export function isHealth({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.url?.startsWith('/health/') === true;
}

const none = {
  'x-ratelimit-limit': false,
  'x-ratelimit-remaining': false,
  'x-ratelimit-reset': false,
  'retry-after': false,
};

/** What comes from here is data: never a page, never kept, never put into a frame. */
export const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;
