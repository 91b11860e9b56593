/** The settings of the audit trail, a part of the table in variables.ts. */
import type { Variable } from './variables.ts';

export const auditVariables = {
  audit: {
    env: 'REDRIVE_AUDIT',
    kind: 'boolean',
    default: true,
    about: 'Keeps the trail of decisions and of what operators did.',
  },
  auditSink: {
    env: 'REDRIVE_AUDIT_SINK',
    kind: 'choice',
    of: ['store', 'nats', 'nats-core', 'log', 'opentelemetry'],
    default: 'store',
    about:
      'Where the trail goes. `store`: a table of the store, which the API can read. `nats`: a subject of JetStream, with acknowledgement. `nats-core`: a subject of core NATS; what nobody subscribes to is gone. `log`: lines of this log. `opentelemetry`: events of the provider of logs that is registered in this process.',
  },
  auditSubject: {
    env: 'REDRIVE_AUDIT_SUBJECT',
    kind: 'text',
    maxBytes: 200,
    pattern: /^[^\s.*>$][^\s.*>]*(\.[^\s.*>]+)*$/,
    takes: 'a subject of at most 200 bytes without blanks, * or >, that does not begin with $',
    default: 'redrive.audit',
    about: 'The subject of the trail, with `REDRIVE_AUDIT_SINK=nats` or `nats-core`.',
  },
  auditRetentionDays: {
    env: 'REDRIVE_AUDIT_RETENTION_DAYS',
    kind: 'integer',
    min: 0,
    max: 3650,
    default: 90,
    about: 'How long the trail is kept in the store; 0: for good.',
  },
} as const satisfies Record<string, Variable>;
