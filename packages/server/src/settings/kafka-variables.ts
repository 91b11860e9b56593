/** What may be set for Kafka: part of the table in `variables.ts`. */
import type { Variable } from './variables.ts';

const file = { kind: 'text', maxBytes: 4096 } as const;

export const kafkaVariables = {
  kafkaBrokers: {
    env: 'KAFKA_BROKERS',
    kind: 'list',
    about:
      'Kafka 3.0 or later, `host:port` separated by commas. Any of them leads to the whole cluster. Topics become destinations (`kafka:TOPIC`), and medium and low notifications wait there. Can be used beside RabbitMQ and NATS.',
    example: 'kafka-1:9092,kafka-2:9092',
  },
  kafkaRetryTopic: {
    env: 'KAFKA_RETRY_TOPIC',
    kind: 'text',
    maxBytes: 249,
    pattern: /^(?!\.{1,2}$)[\w.-]+$/,
    takes: 'a topic of 1 to 249 letters, digits, dots, dashes and underscores',
    about:
      'The topic of messages that failed. Off unless given. `original_queue` of such a message is the topic that it goes back to. The topic has to exist.',
    example: 'retry.scheduled',
  },
  kafkaTls: {
    env: 'KAFKA_TLS',
    kind: 'choice',
    of: ['off', 'on'],
    default: 'off',
    about: 'Connects by TLS. Each of the three files below switches it on too.',
  },
  kafkaTlsCaFile: {
    env: 'KAFKA_TLS_CA_FILE',
    ...file,
    about: 'The certificate of an authority of your own (PEM).',
    example: '/etc/ssl/kafka-ca.pem',
  },
  kafkaTlsCertFile: {
    env: 'KAFKA_TLS_CERT_FILE',
    ...file,
    about: 'The certificate that Redrive shows to the brokers (PEM), with `KAFKA_TLS_KEY_FILE`.',
    example: '/etc/ssl/redrive.pem',
  },
  kafkaTlsKeyFile: {
    env: 'KAFKA_TLS_KEY_FILE',
    ...file,
    about: 'The key of that certificate (PEM).',
    example: '/etc/ssl/redrive-key.pem',
  },
  kafkaSaslMechanism: {
    env: 'KAFKA_SASL_MECHANISM',
    kind: 'choice',
    of: ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'],
    usual: '`SCRAM-SHA-512`, where there is a user',
    about: 'How `KAFKA_USERNAME` and `KAFKA_PASSWORD` are shown to the brokers.',
    example: 'SCRAM-SHA-512',
  },
  kafkaUsername: {
    env: 'KAFKA_USERNAME',
    kind: 'text',
    maxBytes: 255,
    about: 'The user of the connections, with `KAFKA_PASSWORD`.',
    example: 'redrive',
  },
  kafkaPassword: {
    env: 'KAFKA_PASSWORD',
    kind: 'secret',
    maxBytes: 4096,
    about: 'The password of that user.',
  },
} as const satisfies Record<string, Variable>;
