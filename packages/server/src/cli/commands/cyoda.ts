/** `redrive cyoda`: a member of a Cyoda server, on its own. */
import type { VariableName } from '../../settings/variables.ts';
import { command, CommandError, exits, type Io } from '../command.ts';

export const commands = [
  command({
    name: 'cyoda',
    summary: 'Answer the criteria of a Cyoda server, without a store.',
    usage: 'cyoda',
    about:
      'Joins a Cyoda server as a calculation member and answers isRetryDelayElapsed, isMaxRetriesExceeded, ' +
      'hasRetriesAvailable and the function nextRetryTime. A lost stream is joined again. Failed evaluations are logged and ' +
      'counted, and become no inbox items: for these set CYODA_URL and run redrive serve. The token comes from CYODA_TOKEN or ' +
      'CYODA_TOKEN_FILE; the file is read again on every join. SIGTERM and SIGINT answer what has come, then leave.',
    options: {
      url: {
        kind: 'text',
        value: 'url',
        summary: 'grpc://host:9090, or grpcs://; instead of CYODA_URL.',
      },
      tags: { kind: 'text', value: 'tags', summary: 'Separated by commas, instead of CYODA_TAGS.' },
      'token-file': { kind: 'text', value: 'file', summary: 'Instead of CYODA_TOKEN_FILE.' },
      'legal-entity': { kind: 'text', value: 'id', summary: 'Instead of CYODA_LEGAL_ENTITY.' },
      config: { kind: 'text', value: 'file', summary: 'Instead of REDRIVE_CONFIG.' },
    },
    examples: [
      'redrive cyoda --url grpc://localhost:9090 # beside a server on this machine',
      'CYODA_TOKEN_FILE=/run/secrets/cyoda redrive cyoda --url grpcs://cyoda.example.com:9090 # with TLS and a token',
    ],
    async run({ options, json }, io) {
      io.outliveOutput?.();
      const { url, tags, 'token-file': tokenFile, 'legal-entity': legalEntity, config } = options;
      const settings = await settingsOf(io, config, {
        ...(url === undefined ? {} : { cyodaUrl: url }),
        ...(tags === undefined ? {} : { cyodaTags: tags }),
        ...(tokenFile === undefined ? {} : { cyodaTokenFile: tokenFile }),
        ...(legalEntity === undefined ? {} : { cyodaLegalEntity: legalEntity }),
        ...(json ? { logFormat: 'json' } : {}),
      });
      if (settings.cyodaUrl === undefined) {
        const message =
          'Which Cyoda server? Name it with --url grpc://host:9090, or with CYODA_URL.';
        throw new CommandError(message, { exit: exits.usage, code: 'USAGE' });
      }
      const { runMember } = await import('../../cyoda/alone.ts');
      await runMember(settings.cyodaUrl, settings, untilSignal());
      return exits.ok;
    },
  }),
];

async function settingsOf(
  io: Io,
  config: string | undefined,
  flags: Partial<Record<VariableName, string | number>>,
) {
  const { settingsOf: read } = await import('../settings.ts');
  try {
    return await read(io, { flags, ...(config === undefined ? {} : { config }) });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    // Settings know a flag by the name of its setting; here it is shorter.
    const { exit, code, message } = error;
    throw new CommandError(message.replaceAll('--cyoda-', '--'), { exit, code, cause: error });
  }
}

function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
  });
}
