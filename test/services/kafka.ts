/** Kafka brokers of one's own (KRaft, without ZooKeeper): one, or three that form a cluster. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from './cache.ts';
import { Home } from './home.ts';
import { copyJars, findJava, wayOut } from './maven.ts';
import { freePort } from './port.ts';
import { missing, need, type Service, type SharedServer } from './service.ts';
import { canRead, giveTo, spawnIds } from './user.ts';

export interface KafkaOptions {
  /** Of server.properties, over those below. */
  readonly settings?: Readonly<Record<string, string>>;
  /** With it clients come by TLS and SASL only, to `localhost`. */
  readonly security?: KafkaSecurity;
}

export interface KafkaSecurity {
  /** PEM, for `localhost`. */
  readonly key: string;
  readonly cert: string;
  /** Known to PLAIN and to SCRAM-SHA-512. */
  readonly user: string;
  readonly password: string;
}

export interface KafkaServer extends SharedServer, AsyncDisposable {
  /** `127.0.0.1:port`; with security `localhost:port`. */
  readonly address: string;
  /** The same without security, where there is some. */
  readonly insideAddress: string;
  readonly nodeId: number;
  /** Of the broker's process, while it runs. */
  readonly pid: number | undefined;
  /** Ends the broker at once. */
  kill(): Promise<void>;
  /** Ends it as SIGTERM does: it hands its partitions over first. */
  end(): Promise<void>;
  /** Starts it again, on the same port and with the same data. */
  start(): Promise<void>;
}

export interface KafkaCluster extends AsyncDisposable {
  readonly addresses: readonly string[];
  /** By their order: node ids are 1, 2 and 3. */
  readonly servers: readonly KafkaServer[];
  stop(): Promise<void>;
}

const VERSION = '4.1.0';
const JAVA = 17;
const ARTIFACTS = [
  { group: 'org.apache.kafka', name: 'kafka_2.13', version: VERSION },
  { group: 'org.slf4j', name: 'slf4j-simple', version: '1.7.36' },
];
const STARTED = 'Kafka Server started';

export const kafka: Service<'Kafka'> = {
  name: 'Kafka',
  neededBy: 'tests of Kafka',
  find() {
    const java = findJava(JAVA);
    if (!java) return missing(`no Java ${JAVA} on this machine`, wayOut(ARTIFACTS, JAVA));
    const path = jarsIn(cacheFolder(process.env, process.platform));
    return existsSync(path)
      ? { state: 'found', path, version: VERSION }
      : missing(`no Kafka ${VERSION} on this machine`, wayOut(ARTIFACTS, JAVA));
  },
  get: (kit) => copyJars(ARTIFACTS, jarsIn(kit.cacheFolder), kit),
  share: () => startKafka(),
};

function jarsIn(cache: string): string {
  return join(cache, `kafka-${VERSION}`);
}

export async function startKafka(options: KafkaOptions = {}): Promise<KafkaServer> {
  const { servers } = await startBrokers(1, options);
  return servers[0]!;
}

/** Three brokers. Topics with three replicas outlive the end of one. */
export function startKafkaCluster(options: KafkaOptions = {}): Promise<KafkaCluster> {
  return startBrokers(3, options);
}

async function startBrokers(count: number, options: KafkaOptions): Promise<KafkaCluster> {
  const { path: jars } = need(kafka);
  const nodes: Node[] = [];
  for (let id = 1; id <= count; id++) {
    const [port, controllerPort] = [await freePort(), await freePort()];
    nodes.push({ id, port, controllerPort, insidePort: await freePort() });
  }
  const id = randomBytes(16);
  // One that began with a dash would be read as an option.
  id[0]! &= 0x7f;
  const clusterId = id.toString('base64url');
  const servers: KafkaServer[] = [];
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    const plan = { settings: {}, ...options, jars, nodes, clusterId };
    for (const node of nodes) servers.push(prepareBroker(plan, node));
    // A majority has to be there before the first of them is ready.
    await Promise.all(servers.map((server) => server.start()));
  } catch (error) {
    await stop();
    throw error;
  }
  const addresses = servers.map(({ address }) => address);
  return { addresses, servers, stop, [Symbol.asyncDispose]: stop };
}

interface Node {
  readonly id: number;
  readonly port: number;
  readonly controllerPort: number;
  /** For brokers among themselves where clients need TLS. */
  readonly insidePort: number;
}

interface Plan extends KafkaOptions {
  readonly jars: string;
  readonly nodes: readonly Node[];
  readonly clusterId: string;
  readonly settings: Readonly<Record<string, string>>;
}

function prepareBroker(plan: Plan, node: Node): KafkaServer {
  const home = new Home('kafka', 'SIGKILL');
  const java = findJava(JAVA)!.path;
  const classPath = join(readableJars(home, plan.jars), '*');
  const config = join(home.folder, 'server.properties');
  writeFileSync(config, configuration(home, plan, node));
  const format = ['-cp', classPath, 'kafka.tools.StorageTool', 'format'];
  const where = ['-t', plan.clusterId, '-c', config, ...scramUser(plan)];
  const { status, stderr } = spawnSync(java, [...format, ...where], {
    ...spawnIds(home.user),
    encoding: 'utf8',
    cwd: home.folder,
  });
  if (status !== 0) throw new Error(`Kafka could not format its folder: ${stderr}`);
  const args = ['-Xmx512m', '-cp', classPath, 'kafka.Kafka', config];
  const start = () => {
    const before = starts(home);
    return home.run(java, args, () => starts(home) > before);
  };
  const address = `${plan.security ? 'localhost' : '127.0.0.1'}:${node.port}`;
  return {
    url: `kafka://${address}`,
    address,
    insideAddress: plan.security ? `127.0.0.1:${node.insidePort}` : address,
    nodeId: node.id,
    get pid() {
      return home.pid;
    },
    kill: () => home.end('SIGKILL'),
    end: () => home.end('SIGTERM'),
    start,
    stop: () => home.remove(),
    [Symbol.asyncDispose]: () => home.remove(),
  };
}

/** How often the log says that the broker has started: it listens a moment before it serves. */
function starts(home: Home): number {
  const log = join(home.folder, 'server.log');
  return existsSync(log) ? readFileSync(log, 'utf8').split(STARTED).length - 1 : 0;
}

/** The jars, or links to them where the broker's user cannot enter their folder. */
function readableJars(home: Home, jars: string): string {
  const names = readdirSync(jars);
  if (canRead(home.user, join(jars, names[0]!))) return jars;
  const folder = join(home.folder, 'jars');
  mkdirSync(folder);
  for (const name of names) {
    try {
      linkSync(join(jars, name), join(folder, name));
    } catch {
      // Another file system.
      copyFileSync(join(jars, name), join(folder, name));
    }
    chmodSync(join(folder, name), 0o644);
  }
  giveTo(home.user, folder);
  return folder;
}

function scramUser({ security }: Plan): string[] {
  if (!security) return [];
  const { user, password } = security;
  return ['--add-scram', `SCRAM-SHA-512=[name=${user},password=${password}]`];
}

/** Over the settings of a broker without it. */
function secured(home: Home, node: Node, security: KafkaSecurity): Record<string, string> {
  const { key, cert, user, password } = security;
  const keystore = join(home.folder, 'keystore.pem');
  writeFileSync(keystore, `${key}${cert}`);
  giveTo(home.user, keystore);
  const { port, insidePort, controllerPort } = node;
  const inside = `INSIDE://127.0.0.1:${insidePort}`;
  const modules = 'org.apache.kafka.common.security';
  const plain = `${modules}.plain.PlainLoginModule required user_${user}="${password}";`;
  return {
    listeners: `SECURE://127.0.0.1:${port},${inside},CONTROLLER://127.0.0.1:${controllerPort}`,
    'advertised.listeners': `SECURE://localhost:${port},${inside}`,
    'listener.security.protocol.map': 'SECURE:SASL_SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'inter.broker.listener.name': 'INSIDE',
    'listener.name.secure.ssl.keystore.type': 'PEM',
    'listener.name.secure.ssl.keystore.location': keystore,
    'listener.name.secure.sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-512',
    'listener.name.secure.plain.sasl.jaas.config': plain,
    'listener.name.secure.scram-sha-512.sasl.jaas.config': `${modules}.scram.ScramLoginModule required;`,
  };
}

function configuration(home: Home, { nodes, settings, security }: Plan, node: Node): string {
  const [replicas, minInSync] = nodes.length === 1 ? ['1', '1'] : ['3', '2'];
  const voters = nodes.map(({ id, controllerPort }) => `${id}@127.0.0.1:${controllerPort}`);
  const all = {
    'process.roles': 'broker,controller',
    'node.id': String(node.id),
    listeners: `PLAINTEXT://127.0.0.1:${node.port},CONTROLLER://127.0.0.1:${node.controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${node.port}`,
    'controller.listener.names': 'CONTROLLER',
    'controller.quorum.voters': voters.join(','),
    'log.dirs': join(home.folder, 'data'),
    'default.replication.factor': replicas,
    'min.insync.replicas': minInSync,
    'offsets.topic.replication.factor': replicas,
    'offsets.topic.num.partitions': '3',
    'transaction.state.log.replication.factor': replicas,
    'transaction.state.log.min.isr': minInSync,
    'share.coordinator.state.topic.replication.factor': replicas,
    'share.coordinator.state.topic.min.isr': minInSync,
    'group.initial.rebalance.delay.ms': '0',
    // Below the default of 6 s, so that tests need not wait long for a member that was killed.
    'group.min.session.timeout.ms': '1000',
    // Sooner than by default, so that tests need not wait 9 s for another leader.
    'broker.session.timeout.ms': '5000',
    'broker.heartbeat.interval.ms': '1000',
    ...(security ? secured(home, node, security) : {}),
    ...settings,
  };
  return Object.entries(all)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}
