/** `npm run bench -- <suite> [--case a,b] [--json] [--quick] [--strict]`; `--help` lists what there is. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type Options, readOptions } from './options.ts';
import { jsonLine, notRunLine, notRunText, table } from './report.ts';
import type { Case, NotRun, Result, Suite } from './result.ts';
import { loadSuite, suiteNames } from './suites.ts';

/** Collecting garbage on the same thread, so that what a contestant leaves behind is on its bill. */
const execArgv = ['--expose-gc', '--single-threaded-gc'];

const options = readOptions(process.argv.slice(2));
if (options.faults.length > 0) {
  for (const fault of options.faults) console.error(fault);
  console.error('npm run bench -- --help shows how to ask');
  process.exitCode = 2;
} else if (options.help) await help();
else await bench(options);

async function bench({ suites, cases, json, quick, strict }: Options): Promise<void> {
  const loaded: Suite[] = [];
  for (const name of suites.length > 0 ? suites : suiteNames) loaded.push(await loadSuite(name));
  const plan = loaded.flatMap((suite) =>
    suite.cases
      .filter(({ name }) => cases.length === 0 || cases.includes(name))
      .map((one) => ({ suite, one })),
  );
  const unknown = cases.filter((name) => !plan.some(({ one }) => one.name === name));
  if (unknown.length > 0) {
    console.error(`no case ${unknown.join(', ')}; npm run bench -- --help lists them`);
    process.exitCode = 2;
    return;
  }

  let missed = 0;
  let failed = 0;
  let notRun = 0;
  for (const { suite, one } of plan) {
    const heading = { suite: suite.name, case: one.name, about: one.about };
    const result = await runApart(suite, one, quick);
    if (!result) {
      console.error(`${suite.name} · ${one.name}: failed, as told above\n`);
      failed += 1;
      continue;
    }
    if ('notRun' in result) {
      console.log(json ? notRunLine(heading, result) : `${notRunText(heading, result)}\n`);
      notRun += 1;
      continue;
    }
    missed += (result.verdicts ?? []).filter(({ met }) => !met).length;
    console.log(json ? jsonLine(heading, result) : `${table(heading, result)}\n`);
  }
  const without = notRun > 0 ? `, cases not run: ${notRun}` : '';
  if (!json) console.log(`targets missed: ${missed}, cases failed: ${failed}${without}`);
  // Whoever wants all targets met wants them measured.
  if (failed > 0 || (strict && missed + notRun > 0)) process.exitCode = 1;
}

/** In a process of its own, with garbage collection at hand. */
async function runApart(
  suite: Suite,
  one: Case,
  quick: boolean,
): Promise<Result | NotRun | undefined> {
  const args = [suite.name, one.name, quick ? 'quick' : 'usual'];
  const child = fork(join(import.meta.dirname, 'child.ts'), args, { execArgv });
  let result: Result | NotRun | undefined;
  child.on('message', (message) => {
    result = message as Result | NotRun;
  });
  // The result may still be under way when the process has ended, but not when its channel has.
  const [[code]] = await Promise.all([
    once(child, 'exit') as Promise<[number | null]>,
    once(child, 'disconnect'),
  ]);
  return code === 0 ? result : undefined;
}

async function help(): Promise<void> {
  console.log(`npm run bench -- [suite ...] [options]

  --case a,b   only these cases
  --json       one object per line: suite, case, metric, redrive, peers
  --quick      fewer and shorter rounds: a glance, not a measurement
  --strict     exit with 1 when a target is missed

Only ratios within one run mean anything. bench/README.md says what each case measures.`);
  for (const name of suiteNames) {
    const { about, cases } = await loadSuite(name);
    console.log(`\n${name}: ${about}`);
    const width = Math.max(...cases.map((one) => one.name.length));
    for (const one of cases) console.log(`  ${one.name.padEnd(width)}  ${one.about}`);
  }
}
