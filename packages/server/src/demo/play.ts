/** A living system in one process: a service on a folder that goes away, receivers, an outage, traffic. */
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isLane, isPageOf } from '../cli/answers.ts';
import { Client } from '../cli/client.ts';
import { CommandError } from '../cli/command.ts';
import { pause } from '../cli/terminal/progress.ts';
import { readSettings } from '../settings/read.ts';
import type { Settings } from '../settings/settings.ts';
import { Board } from './board.ts';
import { followEvents } from './feed.ts';
import { type Receivers, startReceivers } from './receivers.ts';
import { isDownAt } from './story.ts';
import { Traffic } from './traffic.ts';
import type { Scene } from './view.ts';

const TICK_MS = 100;
/** One step of the lines of deliveries. */
const STEP_TICKS = 5;
const REQUEST_MS = 5000;

/** Plays so long, or until it is interrupted, and cleans up. `show` gets the scene ten times a second. */
export async function play(
  signal: AbortSignal,
  limitMs: number,
  show: (scene: Scene) => void,
): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-demo-'));
  const forget = (): void => rmSync(folder, { recursive: true, force: true });
  // Whatever ends the process: the folder goes with it.
  process.once('exit', forget);
  const receivers = await startReceivers();
  try {
    return await perform(
      await settingsOn(folder, receivers.urls),
      receivers,
      signal,
      limitMs,
      show,
    );
  } finally {
    await receivers.close();
    forget();
    process.removeListener('exit', forget);
  }
}

async function perform(
  settings: Settings,
  receivers: Receivers,
  signal: AbortSignal,
  limitMs: number,
  show: (scene: Scene) => void,
): Promise<Scene> {
  const { createService } = await import('../service.ts');
  const service = createService(settings);
  const over = new AbortController();
  let following: Promise<void> | undefined;
  try {
    const { url } = await service.start();
    await service.ready;
    const client = new Client({ url, timeoutMs: REQUEST_MS });
    const board = new Board(receivers.urls);
    following = followEvents(url, (event) => board.see(event), over.signal);
    const traffic = new Traffic(client, receivers.urls);
    const startedAt = performance.now();
    const scene: Scene = {
      board,
      order: receivers.order,
      taken: receivers.taken,
      elapsedMs: 0,
      url,
    };
    for (let tick = 1; !signal.aborted && scene.elapsedMs < limitMs; tick++) {
      scene.elapsedMs = performance.now() - startedAt;
      receivers.setDown(isDownAt(scene.elapsedMs));
      if (tick % STEP_TICKS === 0) board.step();
      show(scene);
      await traffic.send(scene.elapsedMs);
      const { items } = client.as(isPageOf(isLane), await client.get('/api/v1/lanes'));
      board.seeStates(items);
      await pause(TICK_MS, signal);
    }
    return scene;
  } finally {
    over.abort();
    await following;
    await service.stop();
  }
}

/** Nothing of whoever calls: not their environment, not their `.env`. Quick, so that there is something to see. */
async function settingsOn(folder: string, urls: Receivers['urls']): Promise<Settings> {
  const env = {
    HTTP_PORT: '0',
    REDRIVE_DATA_DIR: folder,
    REDRIVE_LOG_LEVEL: 'silent',
    DEFAULT_MAX_RETRIES: '9',
    BASE_DELAY_MS: '300',
    MAX_DELAY_MS: '3000',
  };
  const reading = await readSettings({ env, cwd: folder });
  if (reading.ok) {
    const lanes = {
      // What fails now and then is not down.
      [new URL(urls.stock).origin]: { failures: 1000 },
      // Slow enough that one sees what waited go out.
      [new URL(urls.bank).origin]: { openFor: '1s', rate: 40 } as const,
    };
    return { ...reading.settings, lanes };
  }
  throw new CommandError(
    reading.faults.map(({ name, message }) => `${name}: ${message}`).join('\n'),
  );
}
