import type { Service } from '../../service.ts';
import { command, CommandError, exits } from '../command.ts';
import { storeInput, storeOptions } from '../store-options.ts';

export const commands = [
  command({
    name: 'serve',
    summary: 'Start the service.',
    usage: 'serve',
    about:
      'With nothing configured it keeps everything in a SQLite file in ./redrive-data and listens on 127.0.0.1:8086. ' +
      'DATABASE_URL takes PostgreSQL instead, RABBITMQ_URL adds RabbitMQ; redrive config check --all shows what else there is. ' +
      'SIGTERM and SIGINT bring to an end what runs; a second one hurries.',
    options: {
      port: { kind: 'text', value: 'n', summary: 'Where to listen, instead of HTTP_PORT.' },
      host: { kind: 'text', value: 'address', summary: 'Instead of REDRIVE_HOST.' },
      ...storeOptions,
      only: {
        kind: 'choice',
        of: ['api', 'intake', 'dispatch'],
        summary:
          'One part of the work: answer requests, take in from the broker, or deliver. All of them unless given.',
      },
    },
    examples: [
      'redrive serve # everything, on this machine',
      'DATABASE_URL=postgres://localhost/redrive RABBITMQ_URL=amqp://localhost redrive serve # with servers',
      'redrive serve --only dispatch # one more that delivers, beside others on the same database',
    ],
    async run({ options, json }, io) {
      io.outliveOutput?.();
      const { settingsOf } = await import('../settings.ts');
      const { port, host, only } = options;
      const { flags, ...input } = storeInput(options);
      const settings = await settingsOf(io, {
        ...input,
        flags: {
          ...flags,
          ...(port === undefined ? {} : { port }),
          ...(host === undefined ? {} : { host }),
          // What a service says is its log.
          ...(json ? { logFormat: 'json' } : {}),
        },
        ...(only === undefined ? {} : { only }),
      });
      const { createService } = await import('../../service.ts');
      // What it writes is for nobody but its owner: payloads may be anything.
      process.umask(0o077);
      const service = createService(settings);
      const ended = endOf(service);
      let url: string;
      try {
        ({ url } = await service.start());
      } catch (error) {
        await service.stop();
        throw startError(error);
      }
      if (settings.logFormat === 'pretty') {
        const { banner } = await import('../terminal/banner.ts');
        io.out(await banner(settings, url, io));
      }
      try {
        await service.ready;
      } catch (error) {
        await service.stop();
        throw startError(error);
      }
      return ended;
    },
  }),
];

/** Resolves when a signal has ended it. */
function endOf(service: Service): Promise<number> {
  return new Promise((resolve) => {
    let isAsked = false;
    const end = () => {
      const stopped = service.stop();
      if (isAsked) return;
      isAsked = true;
      stopped.then(
        () => resolve(exits.ok),
        (error: unknown) => {
          process.stderr.write(`It did not stop well: ${String(error)}\n`);
          resolve(exits.failed);
        },
      );
    };
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, end);
  });
}

function startError(error: unknown): CommandError {
  const { code, message } = error as { code?: string; message: string };
  const isTaken = code === 'EADDRINUSE';
  if (isTaken || code === 'EACCES' || code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    const hint = isTaken
      ? 'Something listens there already, perhaps another redrive. Choose another port with HTTP_PORT or --port.'
      : 'Choose another address or port: REDRIVE_HOST, HTTP_PORT.';
    return new CommandError(`${message}. ${hint}`, { code: 'CANNOT_LISTEN', cause: error });
  }
  return new CommandError(message, {
    exit: exits.configuration,
    code: code ?? 'FAILED',
    cause: error,
  });
}
