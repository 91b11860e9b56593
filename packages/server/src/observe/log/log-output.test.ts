import { EventEmitter } from 'node:events';
import { expect, test, vi } from 'vitest';
import { createLog } from './log.ts';
import { LossyOutput } from './log-output.ts';

type Done = (error?: Error | null) => void;

/** A stream whose reader does what a test says. Answers come when they are asked for, as those of a pipe. */
class Pipe extends EventEmitter {
  readonly lines: string[] = [];
  fault: Error | undefined;
  isRead = true;
  writableLength = 0;
  readonly #waiting: { text: string; done: Done }[] = [];

  write(text: string, done: Done = () => {}): void {
    this.writableLength += text.length;
    this.#waiting.push({ text, done });
    if (this.isRead) queueMicrotask(() => this.flush());
  }

  flush(): void {
    for (const { text, done } of this.#waiting.splice(0)) {
      this.writableLength -= text.length;
      const { fault } = this;
      if (fault) {
        done(fault);
        this.emit('error', fault);
      } else {
        this.lines.push(text);
        done();
      }
    }
  }
}

function logTo(pipe: Pipe, logLevel: 'info' | 'error' = 'info') {
  const output = new LossyOutput(pipe);
  const settings = { serviceName: 's', instance: 'i', logLevel, logFormat: 'json' } as const;
  const log = createLog(settings, output);
  output.onBack = (lines) => log.warn({ lines }, 'lines of this log were lost');
  return { log, output };
}

const soon = () => new Promise(setImmediate);

function messages(pipe: Pipe) {
  return pipe.lines.map((line) => {
    const { msg, lines } = JSON.parse(line) as { msg: string; lines?: number };
    return lines === undefined ? msg : `${msg}: ${lines}`;
  });
}

test('a line that cannot be written is counted, and told when writing works again', async () => {
  const pipe = new Pipe();
  const { log, output } = logTo(pipe);
  log.info('one');
  await soon();
  pipe.fault = new Error('ENOSPC');
  log.info('two');
  log.info('three');
  await soon();
  expect(output.lost).toBe(2);
  pipe.fault = undefined;
  log.info('four');
  await soon();
  log.info('five');
  await soon();
  expect(messages(pipe)).toEqual(['one', 'four', 'lines of this log were lost: 2', 'five']);
  expect(output.lost).toBe(2);
});

test('a line that tells and is lost itself is told again, with all that was lost', async () => {
  const pipe = new Pipe();
  const { log, output } = logTo(pipe);
  pipe.fault = new Error('EPIPE');
  log.info('one');
  await soon();
  // Works for one line, and fails for the line that tells.
  pipe.fault = undefined;
  log.info('two');
  pipe.flush();
  pipe.fault = new Error('EPIPE');
  await soon();
  expect(output.lost).toBe(2);
  pipe.fault = undefined;
  log.info('three');
  await soon();
  expect(messages(pipe)).toEqual(['two', 'three', 'lines of this log were lost: 2']);
});

test('a line that is lost while another one tells is told afterwards', async () => {
  const pipe = new Pipe();
  const { log, output } = logTo(pipe);
  pipe.fault = new Error('ENOSPC');
  log.info('one');
  await soon();
  pipe.fault = undefined;
  pipe.isRead = false;
  log.info('two');
  pipe.flush();
  // The line that tells waits for its reader, and there is no room for one more.
  const waiting = pipe.writableLength;
  pipe.writableLength = 1024 * 1024;
  log.info('three');
  pipe.writableLength = waiting;
  expect(output.lost).toBe(2);
  pipe.isRead = true;
  pipe.flush();
  log.info('four');
  await soon();
  const told = 'lines of this log were lost: 1';
  expect(messages(pipe)).toEqual(['two', told, 'four', told]);
});

test('lines that nobody reads are kept up to a bound, then dropped and counted', async () => {
  const pipe = new Pipe();
  const { log, output } = logTo(pipe);
  pipe.isRead = false;
  for (let i = 0; i < 3000; i++) log.info({ text: 'x'.repeat(1000) }, 'much');
  expect(pipe.writableLength).toBeLessThanOrEqual(1024 * 1024);
  expect(pipe.writableLength).toBeGreaterThan(900 * 1024);
  const { lost } = output;
  expect(lost).toBeGreaterThan(1500);
  pipe.isRead = true;
  pipe.flush();
  await soon();
  expect(messages(pipe).at(-1)).toBe(`lines of this log were lost: ${lost}`);
  expect(pipe.lines).toHaveLength(3000 - lost + 1);
});

test('a line that is longer than the bound is written where nothing else waits', async () => {
  const pipe = new Pipe();
  const output = new LossyOutput(pipe);
  output.write('x'.repeat(2 * 1024 * 1024));
  await soon();
  expect([pipe.lines.length, output.lost]).toEqual([1, 0]);
});

test('a log whose level leaves out the line that tells goes on counting', async () => {
  const pipe = new Pipe();
  const { log, output } = logTo(pipe, 'error');
  for (const message of ['one', 'two']) {
    pipe.fault = new Error('ENOSPC');
    log.error(message);
    await soon();
    pipe.fault = undefined;
    log.error('well');
    await soon();
  }
  expect(messages(pipe)).toEqual(['well', 'well']);
  expect(output.lost).toBe(2);
});

test('an output that throws is no fault of the service', () => {
  const output = new LossyOutput({
    write() {
      throw new Error('destroyed');
    },
  });
  output.write('one\n');
  expect(output.lost).toBe(1);
});

test('several services on one stream listen for its errors once', () => {
  const pipe = new Pipe();
  const warned = vi.spyOn(process, 'emitWarning');
  for (let i = 0; i < 20; i++) logTo(pipe);
  expect(pipe.listenerCount('error')).toBe(1);
  expect(warned).not.toHaveBeenCalled();
});
