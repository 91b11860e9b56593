/** Shows the demo of notifications: on a screen that is drawn again and again, in lines, or as JSON. */
import type { Clock } from 'redrive';
import { exits, type Io } from '../../cli/command.ts';
import type { Output } from '../../cli/terminal/output.ts';
import { LiveArea } from '../../cli/terminal/progress.ts';
import { cut } from '../../cli/terminal/terminal.ts';
import { play } from './play.ts';
import { drawScene, happeningData, happeningLine, sceneData, summaryLine } from './view.ts';

const LATEST = 6;

export async function watchNotifications(
  signal: AbortSignal,
  limitMs: number,
  clock: Clock,
  output: Output,
  io: Io,
): Promise<number> {
  const area = output.live ? new LiveArea((text) => io.out(text), process.stdout.rows) : undefined;
  const latest: string[] = [];
  try {
    const last = await play(signal, limitMs, clock, {
      show: (scene) => area?.draw(drawScene(scene, latest, output)),
      tell(happening, elapsedMs) {
        const line = happeningLine(happening, elapsedMs);
        if (area) {
          latest.push(cut(line, output.width));
          if (latest.length > LATEST) latest.shift();
          return;
        }
        output.data(happeningData(happening, elapsedMs));
        output.say(line);
      },
    });
    output.data({ ...sceneData(last), ended: true });
    output.say('', summaryLine(last));
  } finally {
    area?.end();
  }
  return exits.ok;
}
