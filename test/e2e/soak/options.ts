/** What may be asked of the soak on its command line. */
import { parseArgs } from 'node:util';

export const faults = {
  kills: 'kill -9 of two of the three instances in turn, and of the one with a file',
  restarts: 'restarts and crashes of the broker and the database',
  cuts: 'connections cut, confirms and commits whose answer is lost',
  flaky: 'a receiver that answers 30 % of its requests with 503',
  outage: 'a receiver that answers nothing but 503 for a while',
  huge: 'a message of 17 MiB on retry.scheduled',
  queue: 'a queue that is deleted while messages are on their way to it',
  lanes: '10 000 HTTP origins',
} as const;

export type Fault = keyof typeof faults;

export interface Options {
  readonly minutes: number;
  /** Messages a second through RabbitMQ. */
  readonly perSecond: number;
  readonly with: ReadonlySet<Fault>;
}

const names = Object.keys(faults) as Fault[];

export const help = `Runs real services under load for a while, and does to them what happens in production. Then it accounts
for every message by its id: delivered, in the inbox, or cancelled; and for every duplicate by its cause.

  npm run soak                              ten minutes
  npm run soak -- --minutes 2               shorter
  npm run soak -- --without huge,restarts   leaves faults out
  npm run soak -- --per-second 100          messages a second through RabbitMQ (200)

Faults:
${names.map((name) => `  ${name.padEnd(9)} ${faults[name]}`).join('\n')}

Needs PostgreSQL 18 and RabbitMQ (npm run services -- list). Exit code 1 when a promise did not hold.`;

/** A text: what is wrong with what was asked. */
export function readOptions(args: readonly string[]): Options | 'help' | { wrong: string } {
  let values: Record<string, string | boolean | undefined>;
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        minutes: { type: 'string', default: '10' },
        'per-second': { type: 'string', default: '200' },
        without: { type: 'string', default: '' },
      },
    }));
  } catch (error) {
    return { wrong: (error as Error).message };
  }
  if (values['help']) return 'help';
  const minutes = Number(values['minutes']);
  if (!(minutes > 0 && minutes <= 24 * 60)) {
    return { wrong: `--minutes is ${values['minutes']}; it must be a number over 0, up to 1440.` };
  }
  const perSecond = Number(values['per-second']);
  if (!(perSecond >= 1 && perSecond <= 2000)) {
    return { wrong: `--per-second is ${values['per-second']}; it must be from 1 to 2000.` };
  }
  const without = String(values['without']).split(',').filter(Boolean);
  const unknown = without.filter((name) => !Object.hasOwn(faults, name));
  if (unknown.length > 0) {
    return { wrong: `--without ${unknown.join()}: no such fault. There are: ${names.join(', ')}.` };
  }
  const wanted = names.filter((name) => !without.includes(name));
  return { minutes, perSecond, with: new Set(wanted) };
}
