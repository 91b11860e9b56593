/** `redrive doctor`: looks at everything that Redrive needs, and says what to do about what is not well. */
import { didYouMean, nearest } from 'redrive/internal';
import { hiddenUrl } from '../settings/hide.ts';
import type { SettingsReading } from '../settings/read.ts';
import type { Settings } from '../settings/settings.ts';
import { examineBroker } from './doctor-broker.ts';
import { examineDisk } from './doctor-disk.ts';
import { clockSkew } from './doctor-host.ts';
import { examineGateway } from './doctor-gateway.ts';
import { examineRouting } from './doctor-routing.ts';
import { examineKafka } from './doctor-kafka.ts';
import { examineNats } from './doctor-nats.ts';
import { examineMongo, examineRedis } from './doctor-notifications.ts';
import { examineStore } from './doctor-store.ts';
import { countOf, type Finding, worstFirst } from './finding.ts';

/** What a running server says of itself; `away`: nobody answers there. */
export type ServerAnswer =
  | { type: 'away'; why: string }
  | {
      type: 'answers';
      ready: boolean;
      checks: readonly Check[];
      clockAheadMs: number;
      /** Lanes in which something waits that this server cannot deliver. */
      unserved: readonly { lane: string; isDue: boolean }[];
      /** Lanes in which tasks wait behind items of the inbox. */
      blocked: readonly { lane: string; tasks: number; items: number }[];
      /** Lanes that an operator paused, and in which tasks are due. */
      paused: readonly { lane: string; by?: string }[];
    };

interface Check {
  name: string;
  ok: boolean;
  detail?: string;
}

export interface Examination {
  reading: SettingsReading;
  /** Where the server should be, and how it is asked. */
  serverUrl: string;
  askServer: () => Promise<ServerAnswer>;
}

/** All of it, worst first. Parts are looked at side by side: one that is slow holds up no other. */
export async function examineEverything({
  reading,
  serverUrl,
  askServer,
}: Examination): Promise<Finding[]> {
  const looks: Promise<readonly Finding[]>[] = [
    askServer().then((answer) => [
      ...ofServer(serverUrl, answer),
      ...stranded(answer, reading),
      ...withoutHandler(answer),
      ...blocked(answer),
      ...paused(answer),
    ]),
  ];
  if (reading.ok) {
    const { settings } = reading;
    looks.push(
      guarded('database', () => examineStore(settings)),
      guarded('broker', () => examineBroker(settings)),
      guarded('routing', () => examineRouting(settings)),
      guarded('gateway', () => examineGateway(settings)),
      guarded('nats', () => examineNats(settings)),
      guarded('kafka', () => examineKafka(settings)),
      guarded('redis', () => examineRedis(settings)),
      guarded('mongodb', () => examineMongo(settings)),
    );
    if (settings.databaseUrl === undefined) {
      looks.push(guarded('disk', async () => [await examineDisk(settings.dataDir)]));
    }
  }
  const all = [ofConfiguration(reading), ...(await Promise.all(looks))];
  return worstFirst(all.flat());
}

function ofConfiguration(reading: SettingsReading): Finding[] {
  const about = 'configuration';
  const warnings = reading.warnings.map((what): Finding => ({ about, level: 'warning', what }));
  if (!reading.ok) {
    return [
      ...reading.faults.map(({ name, from, message }): Finding => {
        const where = from === name ? '' : ` (from ${from})`;
        return { about, level: 'broken', what: `${name}: ${message}${where}` };
      }),
      ...warnings,
    ];
  }
  return [...warnings, { about, level: 'fine', what: inWords(reading.settings) }];
}

function inWords(settings: Settings): string {
  const { databaseUrl, rabbitmqUrl, natsUrl = [], kafkaBrokers = [], cyodaUrl } = settings;
  const { dataDir, host, port, only } = settings;
  const store = databaseUrl === undefined ? `SQLite in ${dataDir}` : hiddenUrl(databaseUrl);
  const urls = [rabbitmqUrl ?? [], natsUrl].flat().map((url) => hiddenUrl(url));
  const brokers = [...urls, ...kafkaBrokers.map((address) => `kafka ${address}`)];
  const broker = brokers.length === 0 ? 'no broker' : brokers.join(', ');
  const parts = [store, broker, `${host}:${port}`];
  if (cyodaUrl !== undefined) parts.push(`Cyoda at ${hiddenUrl(cyodaUrl)}`);
  if (only !== undefined) parts.push(`only ${only}`);
  return `No faults: ${parts.join(', ')}.`;
}

function ofServer(url: string, answer: ServerAnswer): Finding[] {
  const about = 'server';
  if (answer.type === 'away') {
    const advice = 'redrive serve starts it; --url or REDRIVE_URL says where it is.';
    return [
      { about, level: 'warning', what: `No server answers at ${url} (${answer.why}).`, advice },
    ];
  }
  const { ready, checks, clockAheadMs } = answer;
  const level = ready ? 'warning' : 'broken';
  return [
    ...checks
      .filter(({ ok, detail }) => !ok || detail !== undefined)
      .map(({ name, ok, detail }): Finding => ({
        about,
        level: ok ? 'warning' : level,
        what: `${name}: ${detail ?? 'not well'}`,
      })),
    ...(ready ? [{ about, level: 'fine', what: `${url} is ready.` } as const] : []),
    clockSkew(`the server at ${url}`, clockAheadMs),
  ];
}

/** With its broker in the configuration some other instance may deliver it: not all of them do everything. */
function stranded(answer: ServerAnswer, reading: SettingsReading): Finding[] {
  if (answer.type === 'away' || !reading.ok) return [];
  const { rabbitmqUrl, natsUrl, kafkaBrokers } = reading.settings;
  const brokers = [
    { setting: 'NATS_URL', value: natsUrl, prefix: 'nats:' },
    { setting: 'KAFKA_BROKERS', value: kafkaBrokers, prefix: 'kafka:' },
    { setting: 'RABBITMQ_URL', value: rabbitmqUrl, prefix: '' },
  ];
  const brokerOf = (lane: string) => brokers.find(({ prefix }) => lane.startsWith(prefix))!;
  const lanes = answer.unserved
    .map(({ lane }) => lane)
    .filter((lane) => !lane.startsWith(HANDLER) && brokerOf(lane).value === undefined);
  const [first, second, third, ...more] = lanes;
  if (first === undefined) return [];
  const wanted = [...new Set(lanes.map((lane) => brokerOf(lane).setting))].join(' and ');
  const names = [first, second, third].filter((name) => name !== undefined).join(', ');
  return [
    {
      about: 'broker',
      level: 'warning',
      what: `Nobody delivers to ${names}${more.length > 0 ? ` and ${more.length} more` : ''}: what is sent there waits.`,
      advice: `Set ${wanted} and start the service again, or cancel the tasks: redrive list --lane ${first}`,
    },
  ];
}

const HANDLER = 'handler:';

/** Handlers are in processes of the user's own: what is due there and has a name that is nearly another one is a slip. */
function withoutHandler(answer: ServerAnswer): Finding[] {
  if (answer.type === 'away') return [];
  const lanes = answer.unserved.filter(({ lane }) => lane.startsWith(HANDLER));
  const names = lanes.map(({ lane }) => lane.slice(HANDLER.length));
  const about = 'handlers';
  return lanes.flatMap(({ lane, isDue }): Finding[] => {
    if (!isDue) return [];
    const name = lane.slice(HANDLER.length);
    const others = names.filter((one) => one !== name);
    const near = nearest(name, others);
    const what = `Tasks for the handler '${name}' are due, and nobody has taken them yet.${didYouMean(near)}`;
    const advice =
      near === undefined
        ? `Start the process that has this handler, or cancel them: redrive list --lane ${lane}`
        : `If the name is a slip, submit them again as '${near}' and cancel these: redrive list --lane ${lane}`;
    return [{ about, level: near === undefined ? 'note' : 'warning', what, advice }];
  });
}

function blocked(answer: ServerAnswer): Finding[] {
  if (answer.type === 'away') return [];
  return answer.blocked.map(({ lane, tasks, items }) => ({
    about: 'inbox',
    level: 'warning',
    what: `${lane}: ${countOf(tasks, 'task')} waiting behind ${countOf(items, 'open item')} of the inbox, of the same ordering keys.`,
    advice: `Replay, resolve or discard the items: redrive review list --lane ${lane}`,
  }));
}

function paused(answer: ServerAnswer): Finding[] {
  if (answer.type === 'away') return [];
  return answer.paused.map(({ lane, by }) => ({
    about: 'lanes',
    level: 'warning',
    what: `${lane} is paused${by === undefined ? '' : ` by ${by}`}, and tasks there are due.`,
    advice: `If it should deliver again: redrive lanes resume ${lane}`,
  }));
}

/** A look that fails is a finding, not the end of the examination. */
async function guarded(about: string, look: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await look();
  } catch (error) {
    const { message } = error as { message?: unknown };
    const what = typeof message === 'string' ? message : String(error);
    return [{ about, level: 'broken', what: `It could not be looked at: ${what}` }];
  }
}
