/** `npm run simulate -- [policy] [options]`: choose a policy by looking. */
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { defineWorld } from '../../packages/core/src/simulate-world.ts';
import { terminalOf } from '../terminal.ts';
import { type Options, readArguments } from './arguments.ts';
import { FINE_BUCKET_MS } from './columns.ts';
import { compare } from './compare.ts';
import { help } from './help.ts';
import { drawPicture } from './picture.ts';
import { readPolicy, SourceError } from './policy-source.ts';
import { drawScreen } from './screen.ts';

// npm runs scripts in the root of the workspace; paths are meant from where the user stands.
const folder = process.env['INIT_CWD'] ?? process.cwd();

// Whoever reads only the first lines (`| head`) is not a fault.
process.stdout.on('error', () => process.exit());

process.exitCode = main(process.argv.slice(2));

function main(args: string[]): number {
  const options = readArguments(args);
  if ('faults' in options) return refuse(options.faults.join('\n'));
  if (options.help) {
    console.log(help);
    return 0;
  }
  try {
    run(options);
    return 0;
  } catch (error) {
    if (error instanceof SourceError) return refuse(error.message);
    throw error;
  }
}

function run(options: Options): void {
  const { name, policy } = readPolicy(options.policy, folder);
  if (options.json) {
    const { simulations } = compare(policy, options.world, options.jitters);
    console.log(JSON.stringify({ policy, simulations: Object.fromEntries(simulations) }, null, 2));
  }
  if (options.json && !options.svg) return;
  const fine = { ...options.world, bucket: FINE_BUCKET_MS };
  const comparison = compare(policy, fine, options.jitters);
  if (!options.json) {
    const terminal = terminalOf(process.stdout, process.env);
    console.log(drawScreen(name, comparison, terminal).join('\n'));
  }
  if (options.svg) {
    write(options.svg, drawPicture(comparison, options.title, defineWorld(options.world).bucket));
    if (!options.json) console.log(`\nThe picture is in ${options.svg}.`);
  }
}

function write(path: string, text: string): void {
  try {
    writeFileSync(resolve(folder, path), text);
  } catch (error) {
    const { code } = error as { code?: string };
    const reason = code === 'ENOENT' ? 'its folder does not exist' : String(code);
    throw new SourceError(
      `${path} cannot be written: ${reason}. Name a file in a folder of yours.`,
    );
  }
}

function refuse(message: string): number {
  console.error(`${message}\n\nnpm run simulate -- --help shows how it is used.`);
  return 2;
}
