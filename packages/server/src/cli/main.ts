#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import type { Io } from './command.ts';

// Before anything else is loaded: the second start needs half the time.
enableCompileCache();

let outlivesOutput = false;
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (outlivesOutput) return;
  // Whoever reads only the first lines (`| head`) is not a fault.
  if (code === 'EPIPE') process.exit();
  process.stderr.write(`The output cannot be written (${message}).\n`);
  process.exit(1);
});
// Nothing is left to say it with. Without a listener it would end the process.
process.stderr.on('error', () => {});

const io: Io = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  outliveOutput: () => (outlivesOutput = true),
  env: process.env,
  cwd: process.cwd(),
  isTty: process.stdout.isTTY,
  columns: process.stdout.columns ?? 80,
  async input() {
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks);
  },
};

const { run } = await import('./run.ts');
process.exitCode = await run(process.argv.slice(2), io);
// Whatever still waits for something that nobody needs any more must not keep the process.
setTimeout(() => process.exit(), 500).unref();
