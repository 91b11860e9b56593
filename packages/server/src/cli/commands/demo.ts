/** `redrive demo`: a living system to look at. */
import { systemClock } from 'redrive/internal';
import { command, exits } from '../command.ts';
import { usageError } from '../inputs.ts';
import { outputOf } from '../terminal/output.ts';
import { shown } from '../terminal/safe-text.ts';
import { untilInterrupted } from '../terminal/progress.ts';

const SECOND_MS = 1000;

export const commands = [
  command({
    name: 'demo',
    summary: 'Watch a service at work: flaky receivers, an outage, a poison message.',
    usage: 'demo [notifications]',
    about:
      'Starts a service on a folder that goes away, three receivers and some traffic, and shows what happens. Nothing of ' +
      'yours is touched, and nothing is left behind. With --json one line per second.\n\n' +
      'With --call it plays single calls instead, as retry() of the package redrive makes them in a process.\n\n' +
      'With notifications it plays retries of push notifications, in memory and with short delays: 503 with Retry-After, a dead ' +
      'token, quiet hours, an inactive device, dead letters and a replay. It ends by itself after about 15 seconds.',
    options: {
      call: { kind: 'flag', summary: 'Play single calls, without a service.' },
      seconds: {
        kind: 'number',
        value: 'n',
        min: 1,
        max: 86_400,
        summary: 'End by itself after so many; until Ctrl-C unless given.',
      },
    },
    examples: [
      'redrive demo # until Ctrl-C',
      'redrive demo --call # a flaky call, retried before your eyes',
      'redrive demo notifications # retries of push notifications',
      'redrive demo --seconds 20 --json # for programs',
    ],
    async run({ positionals: [subject], options, json }, io) {
      const { call, seconds } = options;
      checkSubject(subject, call);
      const output = outputOf(io, json);
      using interrupt = untilInterrupted();
      const limitMs = seconds === undefined ? Infinity : seconds * SECOND_MS;
      if (subject !== undefined) {
        const { watchNotifications } = await import('../../demo/notifications/watch.ts');
        return await watchNotifications(interrupt.signal, limitMs, systemClock, output, io);
      }
      if (!call) {
        const { watch } = await import('../../demo/watch.ts');
        return await watch(interrupt.signal, limitMs, output, io);
      }
      if (json) throw usageError('--call is for people: it has no --json.');
      const { tell } = await import('../../demo/call/tell.ts');
      const limit = seconds === undefined ? [] : [AbortSignal.timeout(limitMs)];
      const signal = AbortSignal.any([interrupt.signal, ...limit]);
      await tell(output, systemClock, (text) => io.out(text), signal);
      return exits.ok;
    },
  }),
];

function checkSubject(subject: string | undefined, call: boolean): void {
  if (subject === undefined) return;
  if (subject !== 'notifications')
    throw usageError(`There is no demo of '${shown(subject)}'. Give 'notifications', or nothing.`);
  if (call) throw usageError('--call plays single calls: leave it out to play notifications.');
}
