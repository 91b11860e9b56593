/**
 * `npm run check -- [gates]`: everything a change has to pass, or only the gates named.
 * Each gate is an npm script; what it printed shows only when it fails.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const root = join(import.meta.dirname, '..');

/** Gate -> script in package.json. Tests are last: a failure ends with vitest's own summary. */
const gates: Record<string, string> = {
  format: 'format:check',
  lint: 'lint',
  types: 'types',
  tidy: 'tidy',
  tests: 'test',
};

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !Object.hasOwn(gates, name));
if (unknown.length > 0) {
  console.error(`no gate named ${unknown.join(', ')}; there are ${Object.keys(gates).join(', ')}`);
  process.exit(2);
}

const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};
const failures: { gate: string; output: string }[] = [];
for (const [gate, script] of Object.entries(gates)) {
  if (asked.length === 0 || asked.includes(gate)) run(gate, scripts[script] ?? '');
}
// All verdicts first, then what the failed gates had to say.
for (const { gate, output } of failures) console.log(`\n── ${gate} ──\n${output}`);
if (failures.length > 0) process.exitCode = 1;

function run(gate: string, command: string): void {
  const startMs = performance.now();
  const result = spawnSync(command, {
    cwd: root,
    shell: true,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    env: {
      ...process.env,
      PATH: join(root, 'node_modules', '.bin') + delimiter + process.env['PATH'],
      ...(process.stdout.isTTY && { FORCE_COLOR: '1' }),
    },
  });
  const passed = command !== '' && result.status === 0;
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1).padStart(6);
  console.log(`${passed ? '✓' : '✗'} ${gate.padEnd(8)}${seconds} s`);
  if (!passed) failures.push({ gate, output: (result.stdout + result.stderr).trim() });
}
