/** Says at the end of a run, after vitest's own summary, which tests did not run for want of a server. */
import { styleText } from 'node:util';
import type { Reporter, TestModule } from 'vitest/node';
import type { MissingService } from './vitest.ts';

export default class MissingServicesReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const lines = missingServices(modules);
    if (lines.length === 0) return;
    const heading = 'SKIPPED for want of a server (REDRIVE_REQUIRE_SERVICES=1 makes it a failure)';
    console.log([styleText(['bold', 'yellow'], heading), ...lines, ''].join('\n'));
  }
}

/** One line per server: how many tests, in how many files, why, and the way out. */
export function missingServices(modules: readonly TestModule[]): string[] {
  const groups = new Map<string, { missing: MissingService; tests: number; files: Set<string> }>();
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const missing = test.meta().missingService;
      if (!missing) continue;
      const group = groups.get(missing.name) ?? { missing, tests: 0, files: new Set() };
      groups.set(missing.name, group);
      group.tests++;
      group.files.add(module.moduleId);
    }
  }
  return Array.from(groups.values(), ({ missing: { name, why, wayOut }, tests, files }) => {
    return `  ${name}: ${counted(tests, 'test')} in ${counted(files.size, 'file')}. ${why}. To have it: ${wayOut}`;
  });
}

function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
