/** The events of an audit trail as one table: their JSON Schema and their reference page come from it. */

type Kind = 'text' | 'number' | 'count' | 'object' | 'any' | readonly string[];

interface EventField {
  is: Kind;
  about: string;
  /** What is not known is null. */
  nullable?: true;
}

interface AuditEventType {
  /** When it is written. */
  about: string;
  /** The contract's own: its fields never change. */
  contract?: true;
  fields: Record<string, EventField>;
}

const text = (about: string): EventField => ({ is: 'text', about });
const count = (about: string): EventField => ({ is: 'count', about });
const maybe = (field: EventField): EventField => ({ ...field, nullable: true });

const subject = {
  retry_category: text(
    'The category of the call. Of a task: the name of its policy, where a submit named one; else `durable`.',
  ),
  operation: text('What was done. Of a task: its lane.'),
};

const whose = {
  tenant_id: maybe(text('Of a task: the header `x-tenant-id` of its context.')),
  correlation_id: maybe(text('Of a task: the header `x-correlation-id` of its context.')),
  trace_id: maybe(text('Of a task: from its `traceparent`.')),
};

const attempt = {
  attempt_number: count('The attempt that just failed or succeeded, from 1 on; 0: there was none.'),
  max_attempts: count('Executions in all.'),
};

const exception = {
  exception_type: maybe(text('The name of the error, or its code.')),
  exception_message: maybe(text('At most 1 KiB of its message.')),
};

const delay: Record<string, EventField> = {
  delay_seconds: { is: 'number', about: 'The wait that follows.' },
};

const key = (action: readonly string[], about: string): Record<string, EventField> => ({
  ...subject,
  idempotency_key: text('The first 16 characters of the key, and `...`.'),
  action: { is: action, about },
  ...whose,
});

const auditEvents: Record<string, AuditEventType> = {
  retry_attempt: {
    about:
      'An execution failed, and there will be another. Not written for the failure that exhausts.',
    contract: true,
    fields: { ...subject, ...attempt, ...delay, ...exception, ...whose },
  },
  retry_exhausted: {
    about: 'Every attempt has failed.',
    contract: true,
    fields: {
      ...subject,
      total_attempts: count('Executions that were.'),
      final_exception_type: maybe(text('Of the last one: the name of the error, or its code.')),
      final_exception_message: maybe(text('At most 1 KiB of its message.')),
      ...whose,
    },
  },
  idempotency: {
    about: 'A stored result was returned (`hit`), or a result was stored (`record`).',
    contract: true,
    fields: key(['hit', 'record'], 'What happened to the key.'),
  },
  idempotency_detail: {
    about: 'Anything else that happened to an idempotency key.',
    fields: key(
      [
        'wait',
        'conflict',
        'mismatch',
        'expired',
        'clear',
        'lost',
        'unrecorded',
        'unstored',
        'unprotected',
        'refused',
      ],
      'What happened to the key.',
    ),
  },
  retry_abandoned: {
    about: 'The work is given up, with attempts left or without any.',
    fields: {
      ...subject,
      reason: text('Why: see [the reasons](#reasons-of-retry_abandoned).'),
      ...attempt,
      ...exception,
      ...whose,
    },
  },
  retry_postponed: {
    about:
      'Nothing that counts happened: the task was snoozed, a broker refused it, or its lane was still down.',
    fields: { ...subject, ...attempt, ...delay, ...exception, ...whose },
  },
  retry_rearmed: {
    about:
      'A broker took a message over, and its failure arrived before that was written. It waits again.',
    fields: { ...subject, ...attempt, ...whose },
  },
  retry_succeeded: {
    about: 'It worked, or a broker took it over. Only with `successes: true`.',
    fields: { ...subject, ...attempt, ...whose },
  },
  policy_registered: {
    about: 'The first use of a policy, and the first one after every hour.',
    fields: {
      policy: text('Its fingerprint.'),
      definition: { is: 'object', about: 'Its [JSON](policy.md).' },
    },
  },
  operator_action: {
    about: 'Somebody did something by hand.',
    fields: {
      action: text('What: see [the actions](#actions-of-operator_action).'),
      by: maybe(text('Who.')),
      item: maybe(count('The item of the inbox.')),
      job: maybe(count('The bulk job.')),
      lane: maybe(text('The lane.')),
      group: maybe(text('The fingerprint of a group of the inbox.')),
      message_id: maybe(text('The message.')),
      details: maybe({ is: 'any', about: 'Filters, options, results; at most 8 KiB.' }),
    },
  },
  job_ended: {
    about:
      'A bulk job is finished, stopped by itself or was cancelled; one that was stopped for as long as `inbox.retention` is cancelled too.',
    fields: {
      job: count('Its number.'),
      state: text('How it ended.'),
      why: maybe(text('Why it stopped.')),
      total: maybe(count('Items that matched.')),
      done: count('Items that were done.'),
      skipped: count('Items that had changed meanwhile.'),
      failed: count('Items that failed.'),
    },
  },
  events_dropped: {
    about: 'The sink works again, after it could not take some events.',
    fields: { count: count('How many were dropped.') },
  },
  route_decided: {
    about: 'A router decided on a provider.',
    fields: {
      operation: text('The id of the routing policy.'),
      request_id: maybe(text('Of the request.')),
      status: maybe(text('The status of the last attempt.')),
      result: text('`retry`, `fallback`, `success` and the like.'),
      provider: maybe(text('The provider that comes next.')),
      error: maybe(text('The code of an error.')),
      reason: text('Why.'),
      backoff_ms: maybe({ is: 'number', about: 'The wait before it.' }),
      tenant_id: maybe(text('Of the request.')),
      trace_id: maybe(text('Of the request.')),
    },
  },
  routing_policy_registered: {
    about: 'The first use of a routing policy, and the first one after every hour.',
    fields: {
      policy: text('Its fingerprint.'),
      operation: text('Its id.'),
      definition: { is: 'object', about: 'Its [JSON](routing-policy.md).' },
    },
  },
};

/** JSON Schema 2020-12 of one event. */
export function auditSchema(): object {
  const types = Object.keys(auditEvents);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'audit-event.schema.json',
    title: 'Event of a Redrive audit trail',
    oneOf: types.map((type) => ({ $ref: `#/$defs/${type}` })),
    $defs: {
      ...Object.fromEntries(
        Object.entries(auditEvents).map(([type, one]) => [type, schemaOf(type, one)]),
      ),
      redrive: {
        description: 'What Redrive adds. Absent in a strict trail.',
        type: 'object',
        properties: {
          instance: { type: 'string' },
          run: { type: 'integer' },
          sequence: { type: 'integer', minimum: 1 },
          policy: { type: 'string' },
          seed: { type: 'number' },
          key: { type: ['string', 'null'] },
          facts: { type: 'object' },
          decision: { type: 'object' },
        },
      },
    },
  };
}

/** The sections of the reference page. */
export function auditTables(): string {
  return Object.entries(auditEvents)
    .map(([type, { about, contract, fields }]) => {
      const rows = Object.entries(fields).map(
        ([name, field]) => `| \`${name}\` | ${takes(field)} | ${field.about} |`,
      );
      const fixed = contract ? ' These fields are version 1 and do not change.' : '';
      return [
        `### \`${type}\``,
        '',
        about + fixed,
        '',
        '| field | is | |',
        '|---|---|---|',
        ...rows,
        '',
      ].join('\n');
    })
    .join('\n');
}

function schemaOf(type: string, { about, fields }: AuditEventType): object {
  const own = Object.entries(fields).map(([name, field]) => [name, fieldSchema(field)] as const);
  return {
    description: about,
    type: 'object',
    properties: {
      event_type: { const: type },
      ...Object.fromEntries(own),
      timestamp: { type: 'string', format: 'date-time' },
      erased_at: { type: 'string', format: 'date-time' },
      redrive: { $ref: '#/$defs/redrive' },
    },
    required: ['event_type', ...Object.keys(fields), 'timestamp'],
    additionalProperties: false,
  };
}

function fieldSchema({ is, about, nullable }: EventField): object {
  const description = about.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1');
  if (is === 'any') return { description };
  if (typeof is !== 'string') return { description, enum: is };
  const type = { text: 'string', number: 'number', count: 'integer', object: 'object' }[is];
  const minimum = is === 'count' || is === 'number' ? { minimum: 0 } : {};
  return { description, type: nullable ? [type, 'null'] : type, ...minimum };
}

function takes({ is, nullable }: EventField): string {
  const word =
    typeof is === 'string'
      ? { text: 'text', number: 'number', count: 'whole number', object: 'object', any: 'JSON' }[is]
      : is.map((one) => `\`${one}\``).join(', ');
  return nullable ? `${word}, or null` : word;
}
