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
      'Where the sticky sessions of routing are kept. Without it: in PostgreSQL, or in `sessions.db` of the data folder.',
    example: 'redis://localhost:6379',
  },
} as const satisfies Record<string, Variable>;
