import { tmpdir } from 'node:os';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import type { Io } from '../../cli/command.ts';
import { outputOf } from '../../cli/terminal/output.ts';
import { visibleLength } from '../../cli/terminal/terminal.ts';
import { answerTo, cast, notificationOf } from './cast.ts';
import { play, type Happening, type Scene } from './play.ts';
import { drawScene } from './view.ts';
import { watchNotifications } from './watch.ts';

const START_MS = Date.UTC(2026, 0, 5, 23, 30);

describe('the cast', () => {
  it('fails as often as it says, and is delivered then', () => {
    const outcomes = [1, 2, 3].map((attempt) => answerTo('taxi', attempt).outcome);
    expect(outcomes).toEqual(['failed', 'failed', 'delivered']);
  });

  it('has quiet hours around the present, over midnight too', () => {
    const quiet = cast.find(({ isQuiet }) => isQuiet)!;
    expect(notificationOf(quiet, START_MS).quietHours).toEqual({
      from: '22:00',
      to: '07:00',
      timeZone: 'UTC',
    });
    expect(notificationOf(cast[0]!, START_MS)).not.toHaveProperty('quietHours');
  });
});

describe('the demo of notifications', () => {
  it('ends every notification in its own way, in less than 20 s', async () => {
    const { scene, happenings, tookMs } = await playing();
    const states = scene.rows.map(({ role, delivery }) => [
      role.id,
      delivery?.state,
      delivery?.attempt,
    ]);
    expect(states).toEqual([
      ['taxi', 'DeliverySucceeded', 3],
      ['login-code', 'DeliverySucceeded', 3],
      ['score', 'Expired', 2],
      ['invoice', 'PermanentFailure', 2],
      ['chat', 'AwaitingRetry', 2],
      ['advert', 'Skipped', 1],
      ['digest', 'DeliverySucceeded', 5],
    ]);
    expect(
      scene.letters.map(({ notification_id: id, reason, attempts }) => [
        id,
        reason,
        attempts.length,
      ]),
    ).toEqual([
      ['invoice', 'DEAD_TOKEN', 2],
      ['digest', 'EXHAUSTED', 4],
    ]);
    expect(happenings.filter(({ type }) => type === 'replayed')).toHaveLength(1);
    expect(tookMs).toBeLessThan(20_000);
  });

  it('waits as long as Retry-After says, and until quiet hours are over', async () => {
    const { sentAt, scene } = await playing();
    expect(sentAt.get('taxi 2')! - sentAt.get('taxi 1')!).toBeGreaterThanOrEqual(2000);
    const chat = scene.rows.find(({ role }) => role.id === 'chat')!;
    expect(chat.delivery?.dueAtMs).toBeGreaterThanOrEqual(Date.UTC(2026, 0, 6, 7));
    expect(chat.delivery?.dueAtMs).toBeLessThan(Date.UTC(2026, 0, 6, 7, 1));
  });

  it('ends when whoever watches has seen enough, and where a limit is given', async () => {
    const aborted = await playing(AbortSignal.abort());
    expect(aborted.happenings).toEqual([]);
    const limited = await playing(new AbortController().signal, 1000);
    expect(limited.scene.elapsedMs).toBe(1000);
    const states = limited.scene.rows.map(({ delivery }) => delivery?.state);
    expect(states).toContain('AwaitingRetry');
  });

  it('tells each step in a line, where nothing can be drawn again', async () => {
    const text = await watching({});
    expect(text).toMatch(
      /^ 0\.0 s {2}taxi +critical +✗ retry_scheduled: .* as the server asked, .*\[urgent lane\]$/m,
    );
    expect(text).toMatch(/chat +medium +✗ .* Quiet hours defer it to .*\[bulk lane\]$/m);
    expect(text).toMatch(/advert +low +■ skipped: The device is inactive/m);
    expect(text).toMatch(/invoice +medium +■ dead letter: DEAD_TOKEN, with 2 attempts$/m);
    expect(text).toMatch(/digest +low +↻ an operator replays the dead letter$/m);
    expect(text).toMatch(/digest +low +↻ retry_scheduled {2}\[bulk lane\]$/m);
    expect(text).toContain(
      '\n7 notifications: 3 delivered, 1 failed for good, 1 skipped, 1 expired, 1 waiting. 2 dead letters.\n',
    );
    expect(text).not.toContain('\u001B');
  });

  it('draws lanes, states and dead letters on a screen', async () => {
    const text = await watching({ isTty: true, env: { NO_COLOR: '1' }, columns: 100 });
    expect(text).toMatch(
      /taxi +critical +urgent +2 +AwaitingRetry +in 1.9 s +503 with Retry-After/,
    );
    expect(text).toContain('digest        low       bulk          2  Retrying');
    expect(text).toMatch(/Lanes +urgent: 3 waiting, bulk: 1 waiting/);
    expect(text).toMatch(/Dead letters +invoice \(DEAD_TOKEN\), digest \(EXHAUSTED\)/);
    expect(text).toContain('7 notifications: 3 delivered');
  });

  it('tells programs, line by line', async () => {
    const text = await watching({}, true);
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type?: string });
    expect(lines[0]).toEqual({ elapsed_ms: 0, type: 'sent', id: 'taxi', attempt: 1 });
    expect(lines.at(-1)).toMatchObject({ ended: true, dead_letters: ['invoice', 'digest'] });
  });

  it.each([40, 60, 80, 100])('fits %i columns', async (columns) => {
    const { scene } = await playing();
    const io = ioOn({ isTty: true, columns });
    const lines = drawScene(scene, [], outputOf(io, false));
    expect(lines.length).toBeGreaterThan(10);
    expect(Math.max(...lines.map(visibleLength))).toBeLessThanOrEqual(columns);
  });
});

async function playing(signal = new AbortController().signal, limitMs = Infinity) {
  const clock = virtualClock(START_MS);
  const happenings: Happening[] = [];
  const sentAt = new Map<string, number>();
  const played = play(signal, limitMs, clock, {
    show: () => {},
    tell(happening, elapsedMs) {
      happenings.push(happening);
      if (happening.type === 'sent') sentAt.set(`${happening.id} ${happening.attempt}`, elapsedMs);
    },
  });
  const tookMs = await clock.run();
  const scene: Scene = await played;
  return { scene, happenings, sentAt, tookMs };
}

async function watching(io: Partial<Io>, json = false): Promise<string> {
  const clock = virtualClock(START_MS);
  let text = '';
  const whole = ioOn({ ...io, out: (part) => void (text += part) });
  const { signal } = new AbortController();
  const watched = watchNotifications(signal, Infinity, clock, outputOf(whole, json), whole);
  await clock.run();
  expect(await watched).toBe(0);
  return text;
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
