/** What the settings of Kafka need beside their kinds. */
import { accessSync, constants } from 'node:fs';
import { resolve } from 'node:path';
import type { Fault } from 'redrive';
import type { Settings } from './settings.ts';
import { variables } from './variables.ts';

type KafkaKeys = Extract<keyof Settings, `kafka${string}`>;

const files = ['kafkaTlsCaFile', 'kafkaTlsCertFile', 'kafkaTlsKeyFile'] as const;
/** The second of a pair is of no use without the first, and the other way round. */
const pairs = [
  ['kafkaTlsCertFile', 'kafkaTlsKeyFile'],
  ['kafkaUsername', 'kafkaPassword'],
] as const;

export function checkKafka(
  settings: Pick<Settings, KafkaKeys>,
  written: ReadonlySet<string>,
  cwd: string,
): { faults: Fault[]; warnings: string[] } {
  const faults: Fault[] = [];
  const warnings: string[] = [];
  const add = (name: KafkaKeys, message: string) =>
    faults.push({ path: variables[name].env, code: 'INVALID_VALUE', message });
  const { kafkaBrokers } = settings;
  for (const text of kafkaBrokers ?? []) {
    if (isAddress(text)) continue;
    // What stands before an @ may be a password.
    const shown = text.replace(/^.*@/s, '***@');
    add(
      'kafkaBrokers',
      `'${shown}' is not an address such as kafka-1:9092. A user is given by KAFKA_USERNAME.`,
    );
  }
  for (const [one, other] of pairs) {
    if ((settings[one] === undefined) === (settings[other] === undefined)) continue;
    const [given, absent] = settings[one] === undefined ? [other, one] : [one, other];
    const { env } = variables[given];
    add(given, `${env} has no effect without ${variables[absent].env}. Give both.`);
  }
  for (const name of files) {
    const given = settings[name];
    if (given === undefined) continue;
    const path = resolve(cwd, given);
    const why = whyUnreadable(path);
    if (why !== undefined) add(name, `The file ${path} cannot be read (${why}).`);
  }
  if (settings.kafkaSaslMechanism !== undefined && settings.kafkaUsername === undefined) {
    const path = variables.kafkaSaslMechanism.env;
    if (kafkaBrokers !== undefined) warnings.push(`${path}: has no effect without KAFKA_USERNAME.`);
  }
  const idle = Object.entries(variables)
    .filter(([name, { env }]) => /^kafka(?!Brokers)/.test(name) && written.has(env))
    .map(([, { env }]) => env);
  if (kafkaBrokers === undefined && idle.length > 0) {
    warnings.push(`${idle.join(', ')}: has no effect without KAFKA_BROKERS.`);
  }
  return { faults, warnings };
}

function isAddress(text: string): boolean {
  const url = /^[^\s/?#@]+$/.test(text) ? URL.parse(`kafka://${text}`) : null;
  return url !== null && url.hostname !== '' && url.port !== '0';
}

function whyUnreadable(path: string): string | undefined {
  try {
    accessSync(path, constants.R_OK);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown error';
  }
}
