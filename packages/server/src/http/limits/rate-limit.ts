/** How many requests a client has in a second. Synchronous: it is asked for every request, before anything else. */
import type { FastifyRequest } from 'fastify';
import type { Settings } from '../../settings/settings.ts';
import { isHealth } from './limits.ts';
import { Problem } from '../problem.ts';

const WINDOW_MS = 1000;
/** Beyond so many clients the one whose window began first is forgotten. */
const MAX_CLIENTS = 5000;

interface Window {
  endMs: number;
  count: number;
}

type Limits = Pick<Settings, 'rateLimit' | 'criterionRateLimit'>;

export class RateLimit {
  readonly #limits: Limits;
  readonly #now: () => number;
  /** By client, the oldest window first. Criteria are asked thousands of times a second, and have a count of their own. */
  readonly #windows = new Map<string, Window>();
  readonly #ofCriteria = new Map<string, Window>();

  constructor(limits: Limits, now = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  /** The problem to answer with; undefined: the request may go on. */
  check(request: FastifyRequest): Problem | undefined {
    // A probe must not be shut out when the service is busy. With a token it counts: a token could be guessed here too.
    if (isHealth(request) && request.headers.authorization === undefined) return undefined;
    const { rateLimit, criterionRateLimit } = this.#limits;
    return isCriterion(request)
      ? this.#count(this.#ofCriteria, request.ip, criterionRateLimit)
      : this.#count(this.#windows, request.ip, rateLimit);
  }

  #count(windows: Map<string, Window>, ip: string, most: number): Problem | undefined {
    const client = networkOf(ip);
    const nowMs = this.#now();
    const window = windows.get(client);
    if (!window || window.endMs <= nowMs) {
      begin(windows, client, nowMs + WINDOW_MS);
      return undefined;
    }
    window.count += 1;
    return window.count > most ? tooMany(most, window.endMs - nowMs) : undefined;
  }
}

function begin(windows: Map<string, Window>, client: string, endMs: number): void {
  windows.delete(client);
  const [oldest] = windows.size >= MAX_CLIENTS ? windows.keys() : [];
  if (oldest !== undefined) windows.delete(oldest);
  windows.set(client, { endMs, count: 1 });
}

/** A client with IPv6 has a network of addresses, at least a /64: all of them are one client. */
function networkOf(ip: string): string {
  if (!ip.includes(':')) return ip;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = ip.split('::');
  const before = head.split(':').filter(Boolean);
  const after = tail?.split(':').filter(Boolean) ?? [];
  const gap = Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => '0');
  const groups = [...before, ...gap, ...after].slice(0, 4);
  return `${groups.map((group) => group.toLowerCase().replace(/^0+(?=.)/, '')).join(':')}::/64`;
}

function isCriterion({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.url === '/api/v1/criteria/:name';
}

function tooMany(most: number, leftMs: number): Problem {
  const detail = `More than ${most} requests in a second. Send many in one: {items}, or {entities} of a criterion.`;
  const headers = { 'retry-after': String(Math.max(1, Math.ceil(leftMs / 1000))) };
  return new Problem('RATE_LIMITED', detail, { headers });
}
