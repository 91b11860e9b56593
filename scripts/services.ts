/** `scripts/services`: the real servers that tests and benchmarks run against. */
import { cacheFolder } from '../test/services/cache.ts';
import { services } from '../test/services/index.ts';
import { table } from '../packages/server/src/cli/terminal/terminal.ts';

const usage = `usage: scripts/services list          what is found, and where
       scripts/services get [name...] gets what is missing; exit code 1 if something still is

Servers: ${services.map(({ name }) => name).join(', ')}.
As root on Debian, missing packages are installed by apt-get; Debian may start a service of its own
from them. What is built or downloaded is kept in REDRIVE_SERVICES_CACHE, at present
${cacheFolder(process.env, process.platform)}`;

const [command, ...names] = process.argv.slice(2);
const unknown = names.filter((name) => !services.some((one) => one.name === name));

if (command === '--help' || command === '-h') {
  console.log(usage);
} else if (command === 'list' && names.length === 0) {
  list();
} else if (command === 'get' && unknown.length === 0) {
  get();
  process.exitCode = list() ? 0 : 1;
} else {
  if (unknown.length > 0) console.error(`no server named ${unknown.join(', ')}`);
  console.error(usage);
  process.exitCode = 2;
}

function get(): void {
  const kit = {
    cacheFolder: cacheFolder(process.env, process.platform),
    say: (line: string) => console.log(line),
  };
  for (const service of asked()) {
    if (service.find().state === 'missing') service.get(kit);
  }
}

/** Whether all are found. */
function list(): boolean {
  const rows = asked().map((service) => ({ service, found: service.find() }));
  const lines = rows.map(({ service, found }) =>
    found.state === 'found'
      ? [`✓ ${service.name}`, found.version, found.path]
      : [`✗ ${service.name}`, 'missing', `${found.why}; ${service.neededBy} need it`],
  );
  for (const line of table(lines, 3)) console.log(line);
  for (const { service, found } of rows) {
    if (found.state === 'missing') console.log(`to have ${service.name}: ${found.wayOut}`);
  }
  return rows.every(({ found }) => found.state === 'found');
}

function asked(): typeof services {
  return names.length === 0 ? services : services.filter(({ name }) => names.includes(name));
}
