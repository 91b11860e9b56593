import { command, exits } from '../command.ts';
import { storeInput, storeOptions } from '../store-options.ts';

export const commands = [
  command({
    name: 'migrate',
    summary: 'Create or update the tables of the store.',
    usage: 'migrate',
    about:
      'The service does this by itself when it starts. This is for a role that may change tables where the service may not, and for a look before an upgrade.',
    options: {
      ...storeOptions,
      check: { kind: 'flag', summary: 'Only say which schema there is.' },
    },
    examples: [
      'redrive migrate # of what DATABASE_URL or the data folder says',
      'DATABASE_URL=postgres://owner@db/redrive redrive migrate # as the owner of the tables',
      'redrive migrate --check --json # what is there',
    ],
    async run({ options, json }, io) {
      const { settingsOf, storeText } = await import('../settings.ts');
      const settings = await settingsOf(io, storeInput(options));
      const { databaseFile } = await import('../../settings/data-dir.ts');
      const { migrateStore, schemaOf } = await import('../../upkeep/schema.ts');
      let before: number | undefined;
      let after: number | undefined;
      try {
        before = await schemaOf(settings);
        if (!options.check) await migrateStore(settings);
        after = options.check ? before : await schemaOf(settings);
      } catch (error) {
        const { storeError } = await import('../store-error.ts');
        throw storeError(error);
      }
      if (json) io.out(`${JSON.stringify({ before: before ?? null, after: after ?? null })}\n`);
      else {
        const change =
          before === after
            ? `schema ${after ?? 'none'}${options.check ? '' : ', up to date'}`
            : `from schema ${before ?? 'none'} to ${after ?? 'none'}`;
        io.out(`${storeText(settings, databaseFile(settings))}: ${change}.\n`);
      }
      return exits.ok;
    },
  }),
];
