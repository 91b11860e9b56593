/** What may be set for NATS: part of the table in `variables.ts`. */
import type { Variable } from './variables.ts';

export const natsVariables = {
  natsUrl: {
    env: 'NATS_URL',
    kind: 'urls',
    protocols: ['nats:', 'tls:'],
    about:
      'NATS with JetStream, one URL or those of a cluster, separated by commas. User and password, or a token, may stand in front of the host. With `tls:` no connection is made without TLS. Can be used beside RabbitMQ.',
    example: 'nats://redrive:secret@localhost:4222',
  },
  natsCredsFile: {
    env: 'NATS_CREDS_FILE',
    kind: 'text',
    maxBytes: 4096,
    about: 'A file of credentials (a JWT and its seed). It is read again for each connection.',
    example: '/run/secrets/redrive.creds',
  },
  natsToken: {
    env: 'NATS_TOKEN',
    kind: 'secret',
    maxBytes: 4096,
    about: 'The token for NATS, where it does not stand in the URL.',
  },
  natsTlsCaFile: {
    env: 'NATS_TLS_CA_FILE',
    kind: 'text',
    maxBytes: 4096,
    about: 'The certificate of an authority of your own (PEM). With it, TLS is required.',
    example: '/etc/ssl/nats-ca.pem',
  },
  natsTlsCertFile: {
    env: 'NATS_TLS_CERT_FILE',
    kind: 'text',
    maxBytes: 4096,
    about: 'The certificate that Redrive shows to the server (PEM), with `NATS_TLS_KEY_FILE`.',
    example: '/etc/ssl/redrive.pem',
  },
  natsTlsKeyFile: {
    env: 'NATS_TLS_KEY_FILE',
    kind: 'text',
    maxBytes: 4096,
    about: 'The key of that certificate (PEM).',
    example: '/etc/ssl/redrive-key.pem',
  },
  natsRetrySubject: {
    env: 'NATS_RETRY_SUBJECT',
    kind: 'text',
    maxBytes: 200,
    pattern: /^[^\s.*>$][^\s.*>]*(\.[^\s.*>]+)*$/,
    takes: 'a subject of at most 200 bytes without blanks, * or >, that does not begin with $',
    default: 'retry.scheduled',
    about:
      'The subject of messages that failed. Where no stream has it, the stream `REDRIVE_RETRIES` is made.',
  },
  natsDeadLetterStreams: {
    env: 'NATS_DEAD_LETTER_STREAMS',
    kind: 'list',
    default: [],
    about:
      'Streams whose messages are taken in when a consumer gives them up at its `max_deliver`; `*` means all. Off unless given. The advisories are kept in the stream `REDRIVE_DEAD_LETTERS`.',
    example: 'ORDERS,INVOICES',
  },
  natsReplicas: {
    env: 'NATS_REPLICAS',
    kind: 'integer',
    min: 1,
    max: 5,
    default: 1,
    about: 'Copies of the streams that Redrive makes. Use 3 in a cluster of three.',
  },
  natsRouting: {
    env: 'NATS_ROUTING',
    kind: 'choice',
    of: ['on', 'off'],
    default: 'on',
    about:
      'Answers routing decisions over request-reply, where `NATS_URL` and `ROUTING_DIR` are set. Whoever may publish to the subjects may ask: limit that by the permissions of NATS.',
  },
  natsRoutingSubject: {
    env: 'NATS_ROUTING_SUBJECT',
    kind: 'text',
    maxBytes: 200,
    pattern: /^[^\s.*>$][^\s.*>]*(\.[^\s.*>]+)*$/,
    takes: 'a subject of at most 200 bytes without blanks, * or >, that does not begin with $',
    default: 'redrive.route',
    about:
      'The first words of the subjects of routing: decisions are asked for at `<subject>.decide`, and outcomes are reported to `<subject>.outcome`.',
  },
} as const satisfies Record<string, Variable>;
