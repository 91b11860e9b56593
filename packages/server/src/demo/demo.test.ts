import { existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { Io } from '../cli/command.ts';
import { call } from '../cli/stage.test.ts';
import { outputOf } from '../cli/terminal/output.ts';
import { visibleLength } from '../cli/terminal/terminal.ts';
import { Board, type FeedEvent } from './board.ts';
import { EventReader } from './event-reader.ts';
import { startReceivers } from './receivers.ts';
import { isDownAt, poisonsBy, sentence } from './story.ts';
import { drawScene, type Scene, sceneLine, summaryLine } from './view.ts';
import { watch } from './watch.ts';

const urls = {
  mail: 'http://127.0.0.1:1/mail',
  stock: 'http://127.0.0.1:2/stock',
  bank: 'http://127.0.0.1:3/bank',
};
const MAIL = 'http://127.0.0.1:1';
const BANK = 'http://127.0.0.1:3';

describe('the receivers', () => {
  it('answer each in its own way', async () => {
    let chance = 0.9;
    const receivers = await startReceivers(() => chance);
    const { mail, stock, bank } = receivers.urls;
    expect(await status(mail, { order: 1 })).toBe(200);
    expect(await status(mail, { order: 2, poison: true })).toBe(500);
    expect(await status(stock, { order: 3 })).toBe(200);
    chance = 0.1;
    expect(await status(stock, { order: 4 })).toBe(503);
    receivers.setDown(true);
    const refused = await post(bank, { order: 5 });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    receivers.setDown(false);
    expect(await status(bank, { order: 5 })).toBe(200);
    expect(await status(bank, { order: 5 })).toBe(200);
    expect(await status(bank, { order: 100_000 })).toBe(200);
    expect((await fetch(bank, { method: 'POST', body: '{' })).status).toBe(400);
    expect(receivers.taken).toEqual({ messages: 4, again: 1 });
    await receivers.close();
  });

  it('notice when one of a line overtakes another', async () => {
    const receivers = await startReceivers(() => 0.9);
    const { stock } = receivers.urls;
    for (const sequence of [1, 2, 2, 3]) await status(stock, { order: sequence, sequence });
    expect(receivers.order).toEqual({ received: 3, isInOrder: true });
    await status(stock, { order: 5, sequence: 5 });
    expect(receivers.order).toEqual({ received: 5, isInOrder: false });
    await receivers.close();
  });
});

describe('the story', () => {
  it('has an outage that begins and ends, again and again', () => {
    const times = [0, 3999, 4000, 10_999, 11_000, 28_000, 35_000];
    expect(times.map(isDownAt)).toEqual([false, false, true, true, false, true, false]);
  });

  it('has a poison message early on', () => {
    expect([0, 1499, 1500, 25_499, 25_500].map(poisonsBy)).toEqual([0, 0, 1, 1, 2]);
  });

  it.each([
    [0, 'closed', 0, 0, 'All is well. stock refuses'],
    [5000, 'closed', 3, 0, 'bank has just gone down.'],
    [6000, 'open', 40, 0, 'its breaker is open: 40 wait'],
    [12_000, 'probing', 40, 0, 'One delivery at a time tries whether bank is back. 40 wait.'],
    [13_000, 'closed', 40, 0, 'bank is back. 40 that waited are on their way.'],
    [15_000, 'closed', 0, 1, 'but for a message that failed every time'],
    [45_000, 'closed', 0, 2, 'but for 2 messages that failed every time'],
  ])(
    'says at %i ms, with a breaker that is %s, what is going on',
    (ms, state, waits, poisons, text) => {
      const board = boardWith({ bank: waits, poisons, state });
      expect(sentence(board.lanes, ms)).toContain(text);
    },
  );
});

describe('the events', () => {
  it('are read in whatever pieces they come', () => {
    const seen: FeedEvent[] = [];
    const reader = new EventReader((event) => seen.push(event));
    const text =
      'id: a-1\n\n: heartbeat\n\nid: a-2\nevent: done\ndata: {"lane":"x","attempt":1}\n\nevent: inbox_full\ndata: {}\n\n';
    for (const piece of text.match(/.{1,7}/gs)!) reader.read(piece);
    expect(seen).toEqual([{ type: 'done', lane: 'x' }, { type: 'inbox_full' }]);
  });

  it('are counted by lane; those of others are not', () => {
    const board = boardWith({ bank: 3, poisons: 1, state: 'open' });
    board.see({ type: 'done', lane: 'https://elsewhere.example' });
    board.seeStates([{ lane: 'https://elsewhere.example', state: 'open' }]);
    expect(board.lanes.bank).toEqual({
      accepted: 3,
      delivered: 0,
      retries: 0,
      inbox: 0,
      state: 'open',
    });
    expect(board.lanes.mail).toEqual({
      accepted: 1,
      delivered: 0,
      retries: 1,
      inbox: 1,
      state: 'closed',
    });
  });

  it('are remembered for a while', () => {
    const board = new Board(urls);
    for (let step = 0; step < 100; step++) {
      for (let i = 0; i < step; i++) board.see({ type: 'done', lane: MAIL });
      board.step();
    }
    expect(board.history('mail', 3)).toEqual([97, 98, 99]);
    expect(board.history('mail', 1000).length).toBeLessThan(100);
    expect(board.history('mail', 0)).toEqual([]);
  });
});

describe('the view', () => {
  it('shows each lane, what goes on and where to look', () => {
    const text = drawScene(scene(), outputOn({ columns: 100 })).join('\n');
    expect(text).toMatch(/^mail +steady +0 +1 +0 +closed +1$/m);
    expect(text).toMatch(/^bank +has outages +0 +0 +40 +OPEN +-$/m);
    expect(text).toContain('Now    bank is down and its breaker is open: 40 wait');
    expect(text).toContain('Order  7 messages of customer 7 to stock, each after the one before');
    expect(text).toContain('curl http://127.0.0.1:8086/api/v1/lanes');
  });

  it.each([40, 60, 80, 100, 200])('fits %i columns', (columns) => {
    const full = scene();
    for (let i = 0; i < 60; i++) {
      full.board.see({ type: 'done', lane: MAIL });
      full.board.step();
    }
    const lines = drawScene(full, outputOn({ isTty: true, columns }));
    expect(Math.max(...lines.map(visibleLength))).toBeLessThanOrEqual(columns);
  });

  it('is a line where nothing can be drawn again', () => {
    expect(sceneLine(scene())).toMatch(
      /^1:05 {2}mail 0 delivered, 0 waiting {2}\| {2}stock .* bank 0 delivered, 40 waiting, breaker open {2}\| {2}bank is down/,
    );
  });

  it('says in the end what was lost, by what the receivers have', () => {
    const last = scene();
    expect(summaryLine(last)).toBe(
      '41 tasks: 0 delivered, 40 still waiting, 1 in the inbox, none lost. 1 deliveries failed and were tried again.',
    );
    last.board.see({ type: 'done', lane: BANK });
    expect(summaryLine({ ...last, taken: { messages: 0, again: 2 } })).toContain(
      '1 lost, 2 came twice.',
    );
  });

  it('says when one overtook another', () => {
    const order = { received: 3, isInOrder: false };
    expect(drawScene({ ...scene(), order }, outputOn({})).join('\n')).toContain(
      'one overtook another',
    );
  });
});

describe('the demo', () => {
  it.each([
    ['in lines', false],
    ['on a screen', true],
  ])('delivers and retries before your eyes %s, and leaves nothing behind', async (_, isTty) => {
    const before = folders();
    const controller = new AbortController();
    let text = '';
    const io = ioOn({
      isTty,
      out: (part) => {
        text += part;
        // Enough has happened: something was delivered, something failed and waits.
        if (/stock +(?:30 % fail +)?[1-9]/.test(part) && !/ 0 +0 +closed/.test(part))
          controller.abort();
      },
      env: { NO_COLOR: '1' },
    });
    expect(await watch(controller.signal, Infinity, outputOf(io, false), io)).toBe(0);
    expect(text).toMatch(/[\d,]+ tasks: [1-9][\d,]* delivered, .* none lost/);
    expect(folders()).toEqual(before);
  });

  it('tells programs, line by line', async () => {
    const controller = new AbortController();
    let text = '';
    const io = ioOn({
      out: (part) => {
        text += part;
        controller.abort();
      },
    });
    await watch(controller.signal, Infinity, outputOf(io, true), io);
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatchObject({
      url: expect.stringMatching(/^http:/),
      lanes: [{ name: 'mail' }, {}, {}],
    });
    expect(lines[1]).toMatchObject({ ended: true });
  });

  it('ends by itself where that is wanted', async () => {
    const { code, out } = await call('demo --seconds 1');
    expect(code).toBe(0);
    expect(out).toMatch(/^A service is at http.*\n0:00 {2}mail/);
  });

  it('plays notifications, and ends where that is wanted', async () => {
    const { code, out } = await call('demo notifications --seconds 1');
    expect(code).toBe(0);
    expect(out).toMatch(/taxi +critical +→ attempt 1\n(.*\n)*.*taxi +critical +✗ retry_scheduled/);
    expect(out).toMatch(/\n7 notifications: 0 delivered, .*\n$/);
  });

  it('refuses what it cannot play', async () => {
    expect(await call('demo notification')).toMatchObject({ code: 2, out: '' });
    expect(await call('demo notifications --call')).toMatchObject({ code: 2, out: '' });
  });

  it('plays calls for people only', async () => {
    expect(await call('demo --call --json')).toMatchObject({ code: 2, out: '' });
    const { out } = await call('demo --call --seconds 1');
    expect(out).toContain('A call that fails in three ways before it works');
  });
});

function folders(): string[] {
  expect(existsSync(tmpdir())).toBe(true);
  return readdirSync(tmpdir()).filter((name) => name.startsWith('redrive-demo-'));
}

function boardWith(given: { bank: number; poisons: number; state: string }): Board {
  const board = new Board(urls);
  for (let i = 0; i < given.bank; i++) board.see({ type: 'accepted', lane: BANK });
  for (let i = 0; i < given.poisons; i++) {
    for (const type of ['accepted', 'retry', 'failed']) board.see({ type, lane: MAIL });
  }
  board.seeStates([{ lane: BANK, state: given.state }]);
  return board;
}

function scene(): Scene {
  const board = boardWith({ bank: 40, poisons: 1, state: 'open' });
  const order = { received: 7, isInOrder: true };
  const taken = { messages: 0, again: 0 };
  return { board, order, taken, elapsedMs: 65_000, url: 'http://127.0.0.1:8086' };
}

function outputOn(io: Partial<Io>) {
  return outputOf(ioOn(io), false);
}

function ioOn(io: Partial<Io>): Io {
  return {
    out: () => {},
    err: () => {},
    env: {},
    cwd: tmpdir(),
    isTty: false,
    columns: 80,
    input: () => Promise.resolve(new Uint8Array()),
    ...io,
  };
}

function post(url: string, body: object): Promise<Response> {
  return fetch(url, { method: 'POST', body: JSON.stringify(body) });
}

async function status(url: string, body: object): Promise<number> {
  return (await post(url, body)).status;
}
