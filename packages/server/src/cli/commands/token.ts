import { command, CommandError, exits } from '../command.ts';

export const commands = [
  command({
    name: 'token',
    summary: 'Make a token for the API, and the entry of REDRIVE_TOKENS that lets it in.',
    usage: 'token <name>',
    about:
      'The token is shown once and kept nowhere: the service knows only its hash. readers look, operators also act, admins also erase. A gateway token may send requests through the gateway, and nothing else.',
    options: {
      role: {
        kind: 'choice',
        of: ['gateway', 'reader', 'operator', 'admin'],
        default: 'operator',
        summary: 'What it may do.',
      },
    },
    examples: [
      'redrive token ops # an operator called ops',
      'redrive token grafana --role reader # may look at metrics, and change nothing',
      'redrive token chatbot --role gateway # for the baseURL of an SDK',
      'redrive token ci --json # for programs',
    ],
    async run({ positionals: [name = ''], options, json }, io) {
      if (!/^[\w.@-]{1,64}$/.test(name)) {
        throw new CommandError(
          `'${name.slice(0, 80)}' is not a name: letters, digits, dots and dashes, at most 64.`,
          { exit: exits.usage, code: 'USAGE' },
        );
      }
      const { makeToken } = await import('../../upkeep/token.ts');
      const made = makeToken(name, options.role);
      if (json) io.out(`${JSON.stringify(made)}\n`);
      else {
        io.out(
          `The token, which is shown only now:\n\n  ${made.token}\n\n` +
            `For the service, after what is there and a comma:\n\n  REDRIVE_TOKENS=${made.entry}\n\n` +
            `For commands:\n\n  export REDRIVE_TOKEN=${made.token}\n`,
        );
      }
      return exits.ok;
    },
  }),
];
