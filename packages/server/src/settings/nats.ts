/** What the settings of NATS need beside their kinds. */
import type { Fault } from 'redrive';
import { hiddenUrl } from './hide.ts';
import type { Settings } from './settings.ts';
import { variables } from './variables.ts';

type NatsKeys = Extract<keyof Settings, `nats${string}`>;

const NAME = /^(\*|[^\s.*>/\\]{1,255})$/;

export function checkNats(
  settings: Pick<Settings, NatsKeys>,
  written: ReadonlySet<string>,
): { faults: Fault[]; warnings: string[] } {
  const faults: Fault[] = [];
  const add = (name: NatsKeys, message: string) =>
    faults.push({ path: variables[name].env, code: 'INVALID_VALUE', message });
  const { natsUrl, natsDeadLetterStreams, natsTlsCertFile, natsTlsKeyFile } = settings;
  for (const name of natsDeadLetterStreams) {
    if (!NAME.test(name)) {
      add('natsDeadLetterStreams', `'${name}' is not the name of a stream, such as ORDERS, or *.`);
    }
  }
  if ((natsTlsCertFile === undefined) !== (natsTlsKeyFile === undefined)) {
    const [given, other] = natsTlsCertFile === undefined ? ['KEY', 'CERT'] : ['CERT', 'KEY'];
    const name = natsTlsCertFile === undefined ? 'natsTlsKeyFile' : 'natsTlsCertFile';
    add(name, `NATS_TLS_${given}_FILE has no effect without NATS_TLS_${other}_FILE. Give both.`);
  }
  for (const text of natsUrl ?? []) {
    const url = new URL(text);
    const rest = `${url.pathname.replace('/', '')}${url.search}${url.hash}`;
    if (url.hostname !== '' && rest === '') continue;
    add('natsUrl', `'${hiddenUrl(text)}' is more, or less, than nats://user:password@host:4222.`);
  }
  const idle = Object.entries(variables)
    .filter(([name, { env }]) => /^nats(?!Url)/.test(name) && written.has(env))
    .map(([, { env }]) => env);
  const warnings =
    natsUrl === undefined && idle.length > 0
      ? [`${idle.join(', ')}: has no effect without NATS_URL.`]
      : [];
  return { faults, warnings };
}
