/**
 * What the tests of commands share: a real service with a receiver, and a way to call `redrive` on it. It has a test of
 * its own, so that it is known to work.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import type { FeedEvent } from '../demo/board.ts';
import { followEvents } from '../demo/feed.ts';
import { createService } from '../service.ts';
import { readSettings } from '../settings/read.ts';
import type { Settings } from '../settings/settings.ts';
import type { Io } from './command.ts';
import { run } from './run.ts';

export interface Stage {
  url: string;
  /** A folder that goes away with the test. */
  folder: string;
  receiver: Receiver;
  /** Calls `redrive` with these words. */
  redrive(line: string | readonly string[], io?: Partial<Io>): Promise<Called>;
  /** The same, with `--json`, and what it printed as JSON, line by line. */
  json(line: string | readonly string[], io?: Partial<Io>): Promise<Loose[]>;
  /** The next so many events of that type; those that have happened already count. */
  event(type: string, count?: number): Promise<void>;
}

export interface Receiver {
  url: string;
  /** The status of its next answers. */
  status: number;
  body: string;
  /** It answers when this is over. */
  held: Promise<void> | undefined;
  /** Payloads that it got, as text. */
  received: string[];
}

export interface Called {
  code: number;
  out: string;
  err: string;
}

/** JSON that one may look into: what is not there is undefined. */
export interface Loose {
  readonly [name: string]: Loose;
}

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

export function cleanUp(clean: () => unknown): void {
  cleanups.push(clean);
}

/** Ends with the test. */
export async function stage(changed: Partial<Settings> = {}): Promise<Stage> {
  const folder = tempFolder();
  const receiver = await startReceiver();
  const service = createService({ ...(await settingsOn(folder)), ...changed });
  cleanUp(() => service.stop());
  const { url } = await service.start();
  await service.ready;
  const events = new Events();
  const over = new AbortController();
  // Where tokens are needed, no test waits for events.
  const following = changed.tokens
    ? undefined
    : followEvents(url, (event) => events.add(event), over.signal);
  cleanUp(async () => {
    over.abort();
    await following;
  });
  const redrive = (line: string | readonly string[], io: Partial<Io> = {}) =>
    call(line, { cwd: folder, ...io, env: { REDRIVE_URL: url, ...io.env } });
  return {
    url,
    folder,
    receiver,
    redrive,
    async json(line, io) {
      const words = [...wordsOf(line), '--json'];
      const { out } = await redrive(words, io);
      return out
        .split('\n')
        .filter(Boolean)
        .map((one) => JSON.parse(one) as Loose);
    },
    event: (type, count = 1) => events.wait(type, count),
  };
}

/** Without a server. */
export async function call(
  line: string | readonly string[],
  given: Partial<Io> = {},
): Promise<Called> {
  const called = { code: 0, out: '', err: '' };
  called.code = await run(wordsOf(line), {
    out: (part) => void (called.out += part),
    err: (part) => void (called.err += part),
    env: {},
    cwd: tmpdir(),
    isTty: false,
    columns: 100,
    input: () => Promise.resolve(new Uint8Array()),
    ...given,
  });
  return called;
}

export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-cli-'));
  cleanUp(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export const id = (digit: number) => `00000000-0000-4000-8000-${String(digit).padStart(12, '0')}`;

function wordsOf(line: string | readonly string[]): string[] {
  return typeof line === 'string' ? line.split(' ') : [...line];
}

async function settingsOn(folder: string): Promise<Settings> {
  const env = {
    HTTP_PORT: '0',
    REDRIVE_DATA_DIR: folder,
    REDRIVE_LOG_LEVEL: 'silent',
    BASE_DELAY_MS: '60000',
  };
  const reading = await readSettings({ env, cwd: folder });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  return reading.settings;
}

async function startReceiver(): Promise<Receiver> {
  const receiver: Receiver = { url: '', status: 200, body: '', held: undefined, received: [] };
  const server = createServer((request, response) => {
    void text(request).then(async (body) => {
      receiver.received.push(body);
      await receiver.held;
      response.writeHead(receiver.status).end(receiver.body);
    });
  });
  receiver.url = `${await listen(server)}/hook`;
  return receiver;
}

/** A server that gives these answers, one after the other, and the last one for good. */
export async function answering(
  ...answers: readonly { status: number; body: unknown; headers?: Record<string, string> }[]
): Promise<string> {
  let asked = 0;
  const server = createServer((request, response) => {
    request.resume();
    const { status, body, headers } = answers[Math.min(asked, answers.length - 1)]!;
    asked += 1;
    response.writeHead(status, headers).end(JSON.stringify(body));
  });
  return listen(server);
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  cleanUp(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

class Events {
  readonly #seen = new Map<string, number>();
  readonly #waiting: { type: string; until: number; resolve: () => void }[] = [];
  readonly #taken = new Map<string, number>();

  add({ type }: FeedEvent): void {
    const seen = (this.#seen.get(type) ?? 0) + 1;
    this.#seen.set(type, seen);
    for (const one of this.#waiting) if (one.type === type && seen >= one.until) one.resolve();
  }

  wait(type: string, count: number): Promise<void> {
    const until = (this.#taken.get(type) ?? 0) + count;
    this.#taken.set(type, until);
    if ((this.#seen.get(type) ?? 0) >= until) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push({ type, until, resolve });
    });
  }
}

describe('the stage', () => {
  it('delivers what is submitted', async () => {
    const { redrive, receiver, event } = await stage();
    const { code } = await redrive(['submit', receiver.url, '{"a":1}']);
    expect(code).toBe(0);
    await event('done');
    expect(receiver.received).toEqual(['{"a":1}']);
  });
});
