/** Follows a bulk job until it is over, or until whoever watches has seen enough. */
import { isJob } from '../answers.ts';
import type { Client } from '../client.ts';
import { CommandError, exits, type Io } from '../command.ts';
import { isOver, jobLines } from './job-lines.ts';
import type { Output } from '../terminal/output.ts';
import { LiveArea, pause } from '../terminal/progress.ts';

const LOOK_MS = 300;
/** The server may be away for a moment; the job goes on as soon as some instance is back. */
const PATIENCE_MS = 60_000;

export async function watchJob(
  id: number,
  client: Client,
  output: Output,
  io: Io,
  signal: AbortSignal,
): Promise<number> {
  const area = output.live ? new LiveArea((text) => io.out(text)) : undefined;
  const look = patientLook(id, client, signal);
  let told = '';
  try {
    for (;;) {
      const seen = await look();
      if (seen === undefined) return leave(id, output, io);
      // What is no job now will be none in a minute.
      const job = client.as(isJob, seen.answer);
      const lines = jobLines(job, output);
      const text = lines.join('\n');
      if (area) area.draw(lines);
      else if (text !== told) {
        output.data(job);
        output.say(...lines);
      }
      told = text;
      if (isOver(job)) return job.state === 'finished' ? exits.ok : exits.failed;
      await pause(LOOK_MS, signal);
    }
  } finally {
    area?.end();
  }
}

/** Undefined: it was interrupted. */
function patientLook(
  id: number,
  client: Client,
  signal: AbortSignal,
): () => Promise<{ answer: unknown } | undefined> {
  let awaySince: number | undefined;
  return async () => {
    while (!signal.aborted) {
      try {
        const answer = await client.get(`/api/v1/review/bulk/${id}`);
        awaySince = undefined;
        return { answer };
      } catch (error) {
        const isAway = error instanceof CommandError && error.exit === exits.unavailable;
        awaySince ??= performance.now();
        if (!isAway || performance.now() - awaySince > PATIENCE_MS) throw error;
        await pause(LOOK_MS, signal);
      }
    }
    return undefined;
  };
}

function leave(id: number, output: Output, io: Io): number {
  output.say('');
  io.err(
    `The job goes on. redrive bulk watch ${id} follows it again; redrive bulk pause ${id} holds it.\n`,
  );
  return exits.ok;
}
