/** `npm run soak -- [options]`: real services under load and trouble for minutes, and an account of every message. */
import { help, readOptions } from './options.ts';
import { soak } from './soak.ts';

const MOST_SHOWN = 50;
const EXAMPLES = 5;

// Everything is closed by then; a connection that a fault left half open must not keep this process alive.
process.exit(await main(process.argv.slice(2)));

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (options === 'help') {
    console.log(help);
    return 0;
  }
  if ('wrong' in options) {
    console.error(`${options.wrong}\n\n${help}`);
    return 2;
  }
  const faults = [...options.with].join(', ') || 'none';
  console.log(`${options.minutes} minutes, faults: ${faults}`);
  const violations = await soak(options, (line) => console.log(line));
  for (const line of summary(violations).slice(0, MOST_SHOWN)) console.log(line);
  console.log(
    violations.length === 0 ? 'every promise held' : `${violations.length} violations of promises`,
  );
  return violations.length === 0 ? 0 : 1;
}

/** By kind, which is the sentence without its ids and numbers, each with a few examples: the first kind must not hide the others. */
function summary(violations: readonly string[]): string[] {
  const kindOf = (one: string) => one.replaceAll(/[\da-f]{8}-[-\da-f]{27}|\d+/g, '…');
  return [...Map.groupBy(violations, kindOf).values()].flatMap((some) => [
    `violation, ${some.length} of this kind: ${some[0]}`,
    ...some.slice(1, EXAMPLES).map((one) => `  also: ${one}`),
  ]);
}
