import { command, exits } from '../command.ts';

export const commands = [
  command({
    name: 'config check',
    summary: 'Check the configuration, and show where each value comes from.',
    usage: 'config check',
    about:
      'The command line goes before the environment, that before .env, that before redrive.config.ts, .js or .json. Secrets are not shown.',
    options: {
      config: {
        kind: 'text',
        value: 'file',
        summary: 'The configuration file, instead of redrive.config.ts, .js or .json.',
      },
      all: { kind: 'flag', summary: 'Also show what has its default.' },
    },
    examples: [
      'redrive config check # what is set, and by whom',
      'redrive config check --all # everything that can be set',
      'HTTP_PORT=80000 redrive config check # ends with 78',
    ],
    async run({ options, json }, io) {
      const { faultText, readAll } = await import('../settings.ts');
      const reading = await readAll(
        io,
        options.config === undefined ? {} : { config: options.config },
      );
      const { warnings } = reading;
      if (json) {
        const { ok } = reading;
        const found = ok ? { settings: reading.origins } : { faults: reading.faults };
        io.out(`${JSON.stringify({ ok, warnings, ...found }, null, 2)}\n`);
        return ok ? exits.ok : exits.configuration;
      }
      for (const warning of warnings) io.err(`warning: ${warning}\n`);
      if (!reading.ok) {
        io.err(`${faultText(reading.faults)}\n`);
        return exits.configuration;
      }
      const { origins } = reading;
      const shown = options.all ? origins : origins.filter(({ from }) => from !== 'default');
      const { table } = await import('../terminal/terminal.ts');
      const rows = shown.map(({ name, value, from }) => [name, value === '' ? '-' : value, from]);
      for (const line of table(rows, 3)) io.out(`${line}\n`);
      const rest = origins.length - shown.length;
      io.out(
        `${shown.length > 0 ? '\n' : ''}The configuration is fine.${rest > 0 ? ` ${rest} settings have their defaults: --all shows them.` : ''}\n`,
      );
      return exits.ok;
    },
  }),
];
