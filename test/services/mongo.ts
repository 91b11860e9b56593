/** Servers of one's own that speak MongoDB's protocol. Neither is MongoDB: no mongod can be had from a registry. */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { cacheFolder } from './cache.ts';
import { findProgram } from './find.ts';
import { buildModule, wayOut as goWayOut } from './go.ts';
import { Home } from './home.ts';
import { copyJars, findJava, wayOut as mavenWayOut } from './maven.ts';
import { startOnFreePort } from './port.ts';
import { type GetKit, missing, need, type Service, type SharedServer } from './service.ts';
import { canRead } from './user.ts';

export interface MongoServer extends SharedServer, AsyncDisposable {
  /** Ends it as SIGTERM does: what it holds is written. */
  end(): Promise<void>;
  /** Starts it again, on the same port and with the same data. */
  start(): Promise<void>;
}

const JAVA = 17;
const JAVA_SERVER = '1.47.0';
const ARTIFACTS = [
  { group: 'de.bwaldvogel', name: 'mongo-java-server-h2-backend', version: JAVA_SERVER },
  { group: 'org.slf4j', name: 'slf4j-simple', version: '2.0.17' },
];
const MAIN = 'RedriveMongo';

/** Its updates are atomic. It has no transactions. */
export const mongoJavaServer: Service<'MongoDB (mongo-java-server)'> = {
  name: 'MongoDB (mongo-java-server)',
  neededBy: 'tests of MongoDB',
  find() {
    const wayOut = mavenWayOut(ARTIFACTS, JAVA);
    if (!findJava(JAVA)) return missing(`no Java ${JAVA} on this machine`, wayOut);
    const path = javaServerIn(cacheFolder(process.env, process.platform));
    return existsSync(join(path, `${MAIN}.class`))
      ? { state: 'found', path, version: JAVA_SERVER }
      : missing(`no mongo-java-server ${JAVA_SERVER} on this machine`, wayOut);
  },
  get(kit) {
    const folder = javaServerIn(kit.cacheFolder);
    copyJars(ARTIFACTS, folder, kit);
    if (existsSync(folder)) compile(folder, kit);
  },
  share: () => startMongo(),
};

const FERRETDB = '1.24.0';
const MODULE = `github.com/FerretDB/FerretDB`;

/** For its protocol alone: of 500 updates of 20 writers that it acknowledges it counts 22. */
export const ferretdb: Service<'FerretDB'> = {
  name: 'FerretDB',
  neededBy: 'tests of MongoDB',
  find() {
    const path = join(ferretdbIn(cacheFolder(process.env, process.platform)), 'ferretdb');
    return existsSync(path)
      ? { state: 'found', path, version: FERRETDB }
      : missing(`no FerretDB ${FERRETDB} on this machine`, goWayOut(`${MODULE}@v${FERRETDB}`));
  },
  get: (kit) =>
    buildModule(
      { name: 'ferretdb', require: `${MODULE} v${FERRETDB}`, main: ferretdbMain },
      ferretdbIn(kit.cacheFolder),
      kit,
    ),
  share: () => startFerretdb(),
};

function javaServerIn(cache: string): string {
  return join(cache, `mongo-java-server-${JAVA_SERVER}`);
}

function ferretdbIn(cache: string): string {
  return join(cache, `ferretdb-${FERRETDB}`);
}

/** A mongo-java-server, in memory, or on disk for what has to outlive a restart. */
export async function startMongo({ onDisk = false } = {}): Promise<MongoServer> {
  const { path } = need(mongoJavaServer);
  const java = findJava(JAVA)!.path;
  return run('mongo', (home, port) => {
    const jars = readable(home, path, 'jars');
    const options = ['-Xmx512m', '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'];
    const file = onDisk ? [join(home.folder, 'data.mv')] : [];
    return [java, ...options, '-cp', `${jars}/*:${jars}`, MAIN, String(port), ...file];
  });
}

/** A FerretDB on SQLite. */
export async function startFerretdb(): Promise<MongoServer> {
  const { path } = need(ferretdb);
  return run('ferretdb', (home, port) => {
    const data = join(home.folder, 'data');
    mkdirSync(data, { recursive: true, mode: 0o777 });
    chmodSync(data, 0o777);
    return [readable(home, path, 'ferretdb'), String(port), `file:${data}/`];
  });
}

async function run(
  kind: string,
  command: (home: Home, port: number) => string[],
): Promise<MongoServer> {
  const home = new Home(kind, 'SIGKILL');
  const launch = (port: number) => {
    const [program, ...args] = command(home, port);
    return home.run(program!, args, () => answers(port));
  };
  try {
    const port = await startOnFreePort(home, launch);
    return {
      url: `mongodb://127.0.0.1:${port}`,
      end: () => home.end('SIGTERM'),
      start: () => launch(port),
      stop: () => home.remove(),
      [Symbol.asyncDispose]: () => home.remove(),
    };
  } catch (error) {
    await home.remove();
    throw error;
  }
}

/** The path, or a copy where the server's user cannot read it. */
function readable(home: Home, path: string, name: string): string {
  if (canRead(home.user, path)) return path;
  const copy = join(home.folder, name);
  if (!existsSync(copy)) cpSync(path, copy, { recursive: true });
  return copy;
}

/** Whoever answers a `hello`, in any way, serves clients. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(hello));
    let isReady = false;
    socket.once('data', () => {
      isReady = true;
      socket.destroy();
    });
    socket.on('error', () => socket.destroy());
    socket.setTimeout(1000, () => socket.destroy());
    socket.on('close', () => resolve(isReady));
  });
}

const OP_MSG = 2013;
const fields = Buffer.from('\x10hello\0\x01\0\0\0\x02$db\0\x06\0\0\0admin\0\0', 'latin1');
const HEADER_BYTES = 25;

/** The message `{hello: 1, $db: 'admin'}`. */
const hello = Buffer.concat([
  numbers(HEADER_BYTES + fields.length, 1, 0, OP_MSG, 0),
  Buffer.from([0]),
  numbers(4 + fields.length),
  fields,
]);

function numbers(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeInt32LE(value, 4 * i);
  return bytes;
}

function compile(folder: string, { say }: GetKit): void {
  const javac = findProgram('javac', ['/usr/bin', '/opt/homebrew/opt/openjdk/bin']);
  if (!javac) {
    say(`cannot compile ${MAIN}: there is no javac on this machine`);
    return;
  }
  const source = join(folder, `${MAIN}.java`);
  writeFileSync(source, javaMain);
  const args = ['-cp', `${folder}/*`, '-d', folder, source];
  const { status, stderr, error } = spawnSync(javac.path, args, { encoding: 'utf8' });
  if (status !== 0) say(error ? error.message : stderr.trimEnd());
}

/** Clients of today refuse the wire version of its own MONGO_5_0, 8: that of MongoDB 5.0 is 13. */
const javaMain = `import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import java.util.List;

public class ${MAIN} {
  public static void main(String[] args) {
    H2Backend backend = args.length > 1 ? new H2Backend(args[1]) : H2Backend.inMemory();
    MongoServer server = new MongoServer(backend.version(new MongoVersion() {
      public List<Integer> getVersionArray() { return List.of(5, 0, 0); }
      public int getWireVersion() { return 13; }
    }));
    Runtime.getRuntime().addShutdownHook(new Thread(server::shutdown));
    server.bind("127.0.0.1", Integer.parseInt(args[0]));
  }
}
`;

const ferretdbMain = `package main

import (
	"context"
	"os"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	f, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:" + os.Args[1]},
		Handler:   "sqlite",
		SQLiteURL: os.Args[2],
	})
	if err != nil {
		panic(err)
	}
	if err := f.Run(context.Background()); err != nil {
		panic(err)
	}
}
`;
