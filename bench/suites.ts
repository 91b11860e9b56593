import type { Suite } from './result.ts';

const suites: Record<string, () => Promise<Suite>> = {
  core: async () => (await import('./core/suite.ts')).suite,
  'delay-queue': async () => (await import('./delay-queue/suite.ts')).suite,
  engine: async () => (await import('./engine/suite.ts')).suite,
  criterion: async () => (await import('./criterion/suite.ts')).suite,
  idempotency: async () => (await import('./idempotency/suite.ts')).suite,
  inbox: async () => (await import('./inbox/suite.ts')).suite,
  notifications: async () => (await import('./notifications/suite.ts')).suite,
  route: async () => (await import('./route/suite.ts')).suite,
  service: async () => (await import('./service/suite.ts')).suite,
};

export const suiteNames = Object.keys(suites);

export async function loadSuite(name: string): Promise<Suite> {
  const load = suites[name];
  if (!load) throw new Error(`no suite ${name}; there are: ${suiteNames.join(', ')}`);
  return load();
}
