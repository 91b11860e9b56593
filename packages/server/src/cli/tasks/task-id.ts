/** The id of a task as people copy it: all of it, or how it begins. */
import { isTask } from '../answers.ts';
import { readDestination } from '../../http/reading/destination.ts';
import type { Client } from '../client.ts';
import { CommandError } from '../command.ts';
import { shown } from '../terminal/safe-text.ts';
import { destinationText } from '../views.ts';
import type { DestinationView } from '../wire.ts';

const UUID_LENGTH = 36;
const LEAST = 4;
/** So many of the newest are looked through. */
const LOOKED_AT = 2000;
const LISTED = 10;

/** What the command does with the task: a wrong guess does harm only where the task is changed. */
type Purpose = 'show' | 'change';

/** The whole id. What is no beginning of one goes to the server as it is, which says what is wrong. */
export async function wholeId(
  client: Client,
  given: string,
  which: { queue: string | undefined; destination: string | undefined },
  purpose: Purpose,
): Promise<string> {
  const isBeginning = /^[0-9a-f-]+$/i.test(given) && given.length < UUID_LENGTH;
  if (!isBeginning || given.length < LEAST) return given;
  const { found, hasMore } = await tasksThatBegin(client, given.toLowerCase(), which);
  const [only, ...others] = found.keys();
  if (only === undefined) {
    const looked = hasMore ? `None of the newest ${LOOKED_AT} tasks` : 'No task';
    throw new CommandError(
      `${looked} has an id that begins with '${shown(given)}'. Give the whole id, as redrive list shows it.`,
      { code: 'TASK_UNKNOWN' },
    );
  }
  if (others.length === 0 && hasMore && purpose === 'change') {
    throw new CommandError(
      `Only the newest ${LOOKED_AT} tasks were compared with '${shown(given)}', and an older task may begin with it too. Nothing was changed. Give the whole id: ${shown(only)}`,
      { code: 'AMBIGUOUS' },
    );
  }
  if (others.length === 0) return only;
  const lines = [...found].slice(0, LISTED).map(([id, what]) => `  ${shown(id)}  ${shown(what)}`);
  const more = found.size > LISTED ? `\n  and ${found.size - LISTED} more` : '';
  throw new CommandError(
    `${found.size} tasks have an id that begins with '${shown(given)}'. Give more of it:\n${lines.join('\n')}${more}`,
    { code: 'AMBIGUOUS' },
  );
}

async function tasksThatBegin(
  client: Client,
  beginning: string,
  { queue, destination }: { queue: string | undefined; destination: string | undefined },
): Promise<{ found: Map<string, string>; hasMore: boolean }> {
  const read = destination === undefined ? undefined : readDestination(destination);
  const meant = read && 'destination' in read ? read.destination : undefined;
  const lane = meant && queue === undefined ? laneOf(meant) : undefined;
  const found = new Map<string, string>();
  let seen = 0;
  const query = { queue, lane };
  for await (const task of client.items(isTask, '/api/v1/retries', query, LOOKED_AT + 1)) {
    seen += 1;
    if (seen > LOOKED_AT) break;
    const { message_id: id, destination: at, status } = task;
    const isMeant = !meant || (at.kind === meant.kind && at.address === meant.address);
    if (isMeant && id.startsWith(beginning)) found.set(id, `${destinationText(at)}, ${status}`);
  }
  return { found, hasMore: seen > LOOKED_AT };
}

/** As the engine has it, which a command must not wait for. */
function laneOf({ kind, address }: DestinationView): string {
  return kind === 'http' ? new URL(address).origin : `${kind}:${address}`;
}
