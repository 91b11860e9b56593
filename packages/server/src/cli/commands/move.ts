import { command, CommandError, exits } from '../command.ts';
import { storeInput, storeOptions } from '../store-options.ts';

export const commands = [
  command({
    name: 'move',
    summary: 'Take everything from the data folder into PostgreSQL.',
    usage: 'move',
    about:
      'Tasks with their executions, the inbox, lanes, policies and the audit trail. Stop the service first, set DATABASE_URL, move, ' +
      'and start it again. Nothing is lost or doubled if this is interrupted: call it again, and it goes on where it was. ' +
      'At the end the file is renamed, not deleted.',
    options: storeOptions,
    examples: [
      'DATABASE_URL=postgres://localhost/redrive redrive move # from ./redrive-data',
      'redrive move --data-dir /var/lib/redrive --json # with DATABASE_URL from .env',
    ],
    async run({ options, json }, io) {
      const { settingsOf } = await import('../settings.ts');
      const settings = await settingsOf(io, storeInput(options));
      const { databaseUrl } = settings;
      if (databaseUrl === undefined) {
        throw new CommandError('DATABASE_URL is not set: it says where to move to.', {
          exit: exits.configuration,
          code: 'MOVE_NEEDS_DATABASE',
        });
      }
      const { databaseFile } = await import('../../settings/data-dir.ts');
      const { move } = await import('../../upkeep/move.ts');
      const { progressOf, summaryOf } = await import('../terminal/move-progress.ts');
      const file = databaseFile(settings);
      const progress = progressOf(io, json);
      try {
        const result = await move({ file, databaseUrl, onProgress: (now) => progress.show(now) });
        progress.end();
        if (json) io.out(`${JSON.stringify(result)}\n`);
        else if (result.type === 'nothing') io.out(`There is no ${file}: nothing to move.\n`);
        else io.out(summaryOf(result));
        return exits.ok;
      } catch (error) {
        progress.end();
        const { storeError } = await import('../store-error.ts');
        throw storeError(
          error,
          'Nothing is lost: call redrive move again, and it goes on where it was.',
        );
      }
    },
  }),
];
