/** The settings of routing, a part of the table in variables.ts. */
import type { Variable } from './variables.ts';

export const routingVariables = {
  routingDir: {
    env: 'ROUTING_DIR',
    kind: 'text',
    maxBytes: 4096,
    about:
      'A folder of routing policies, `<policy_id>.json` each. A file that changes is loaded again; a bad one keeps the last good policy. Off unless given.',
    example: './routing',
  },
  redisUrl: {
    env: 'REDIS_URL',
    kind: 'url',
    protocols: ['redis:', 'rediss:'],
    about:
      'Redis: sticky sessions of routing, and the urgent lane of notifications. Without it both are in PostgreSQL, or in the data folder.',
    example: 'redis://localhost:6379',
  },
  routingGateway: {
    env: 'ROUTING_GATEWAY',
    kind: 'choice',
    of: ['off', 'on'],
    default: 'off',
    about:
      'Serves `/gateway/<policy_id>/...`: requests are passed on to the providers of a routing policy. Needs `ROUTING_DIR` with a `providers.json`.',
  },
  routingGatewayMaxBodyBytes: {
    env: 'ROUTING_GATEWAY_MAX_BODY_BYTES',
    kind: 'integer',
    min: 0,
    max: 64 * 1024 * 1024,
    default: 1024 * 1024,
    about:
      'The largest body of a request that the gateway keeps for a retry. A larger one is streamed to one provider and not repeated.',
  },
  routingGatewayIdleMs: {
    env: 'ROUTING_GATEWAY_IDLE_MS',
    kind: 'integer',
    min: 100,
    max: 3_600_000,
    default: 120_000,
    about:
      'How long a provider may be silent in the middle of an answer, and a client in the middle of a request or of an answer. `idle_timeout_ms` of a provider goes before it.',
  },
  routingGatewayConcurrency: {
    env: 'ROUTING_GATEWAY_CONCURRENCY',
    kind: 'integer',
    min: 1,
    max: 2000,
    default: 1000,
    about: 'Requests under way in the gateway at once. Further ones get 503.',
  },
} as const satisfies Record<string, Variable>;
