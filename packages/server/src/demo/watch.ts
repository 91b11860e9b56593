/** Shows the demo: on a screen that is drawn again and again, in lines, or as JSON. */
import { exits, type Io } from '../cli/command.ts';
import type { Output } from '../cli/terminal/output.ts';
import { LiveArea } from '../cli/terminal/progress.ts';
import { play } from './play.ts';
import { drawScene, type Scene, sceneData, sceneLine, summaryLine } from './view.ts';

const SECOND_MS = 1000;

export async function watch(
  signal: AbortSignal,
  limitMs: number,
  output: Output,
  io: Io,
): Promise<number> {
  const area = output.live ? new LiveArea((text) => io.out(text), process.stdout.rows) : undefined;
  let told = -1;
  const tell = (scene: Scene): void => {
    const second = Math.floor(scene.elapsedMs / SECOND_MS);
    if (second === told) return;
    if (told === -1) output.say(`A service is at ${scene.url}: curl ${scene.url}/api/v1/lanes`);
    told = second;
    output.data(sceneData(scene));
    output.say(sceneLine(scene));
  };
  try {
    const last = await play(signal, limitMs, (scene) =>
      area ? area.draw(drawScene(scene, output)) : tell(scene),
    );
    output.data({ ...sceneData(last), ended: true });
    output.say('', summaryLine(last));
  } finally {
    area?.end();
  }
  return exits.ok;
}
