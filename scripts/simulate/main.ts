/** `npm run simulate -- [policy] [options]` is `redrive simulate`, from where the user stands. */
import { chdir, env } from 'node:process';

// npm runs scripts in the root of the workspace; paths are meant from where it was called.
if (env['INIT_CWD'] !== undefined) chdir(env['INIT_CWD']);
process.argv.splice(2, 0, 'simulate');
await import('../../packages/server/src/cli/main.ts');
