/** `redrive demo`: a living system to look at. */
import { systemClock } from 'redrive/internal';
import { command, exits } from '../command.ts';
import { usageError } from '../inputs.ts';
import { outputOf } from '../terminal/output.ts';
import { untilInterrupted } from '../terminal/progress.ts';

const SECOND_MS = 1000;

export const commands = [
  command({
    name: 'demo',
    summary: 'Watch a service at work: flaky receivers, an outage, a poison message.',
    usage: 'demo',
    about:
      'Starts a service on a folder that goes away, three receivers and some traffic, and shows what happens. Nothing of ' +
      'yours is touched, and nothing is left behind. With --json one line per second.\n\n' +
      'With --call it plays single calls instead, as retry() of the package redrive makes them in a process.',
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
      'redrive demo --seconds 20 --json # for programs',
    ],
    async run({ options, json }, io) {
      const { call, seconds } = options;
      const output = outputOf(io, json);
      using interrupt = untilInterrupted();
      const limitMs = seconds === undefined ? Infinity : seconds * SECOND_MS;
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
