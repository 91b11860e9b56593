/** Which commands there are. Each module is loaded when it is asked for: `redrive --help` must not wait for drivers. */
import type { Command } from './command.ts';

/** A module of `commands/`: one command, or all that begin with the same word. */
interface CommandModule {
  commands: readonly Command[];
}

/** By first word, under the headings of the help. */
export const directory: Readonly<
  Record<string, Readonly<Record<string, () => Promise<CommandModule>>>>
> = {
  'Run it': {
    serve: () => import('./commands/serve.ts'),
    cyoda: () => import('./commands/cyoda.ts'),
    demo: () => import('./commands/demo.ts'),
    config: () => import('./commands/config.ts'),
    token: () => import('./commands/token.ts'),
  },
  'Work with it': {
    submit: () => import('./commands/submit.ts'),
    list: () => import('./commands/list.ts'),
    show: () => import('./commands/show.ts'),
    cancel: () => import('./commands/cancel.ts'),
    expedite: () => import('./commands/expedite.ts'),
    succeeded: () => import('./commands/succeeded.ts'),
    lanes: () => import('./commands/lanes.ts'),
    review: () => import('./commands/review.ts'),
    bulk: () => import('./commands/bulk.ts'),
    audit: () => import('./commands/audit.ts'),
  },
  'Choose a policy': {
    simulate: () => import('./commands/simulate.ts'),
    route: () => import('./commands/route.ts'),
    criteria: () => import('./commands/criteria.ts'),
  },
  'Look after it': {
    doctor: () => import('./commands/doctor.ts'),
    migrate: () => import('./commands/migrate.ts'),
    move: () => import('./commands/move.ts'),
  },
};

export const firstWords: readonly string[] = Object.values(directory).flatMap((part) =>
  Object.keys(part),
);

/** The commands that begin with that word; undefined: there are none. */
export async function commandsOf(word: string): Promise<readonly Command[] | undefined> {
  const load = Object.values(directory).find((part) => Object.hasOwn(part, word))?.[word];
  return load && (await load()).commands;
}
