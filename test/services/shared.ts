/** The servers that all test files of a run share: see global-setup.ts. */
import { inject } from 'vitest';
import type { ServiceName } from './index.ts';

export type DeskAnswer = { readonly url: string } | { readonly error: string };

declare module 'vitest' {
  interface ProvidedContext {
    servicesDesk: string | undefined;
  }
}

/** The address of the run's server, which starts if nobody asked for it before. */
export async function sharedServer(name: ServiceName): Promise<string> {
  const desk = inject('servicesDesk');
  if (desk === undefined) {
    throw new Error('add test/services/global-setup.ts to globalSetup of the vitest configuration');
  }
  const response = await fetch(desk + encodeURIComponent(name));
  const answer = (await response.json()) as DeskAnswer;
  if ('error' in answer) throw new Error(answer.error);
  return answer.url;
}
