/** The id of a task as people copy it: all of it, or how it begins. */
import { isTask } from '../answers.ts';
import type { Client, Query } from '../client.ts';
import { CommandError } from '../command.ts';
import { shown } from '../terminal/safe-text.ts';
import { destinationText } from '../views.ts';

const UUID_LENGTH = 36;
const LEAST = 4;
/** So many of the newest are looked through. */
const LOOKED_AT = 2000;
const LISTED = 10;

/** The whole id. What is no beginning of one goes to the server as it is, which says what is wrong. */
export async function wholeId(client: Client, given: string, which: Query = {}): Promise<string> {
  const isBeginning = /^[0-9a-f-]+$/i.test(given) && given.length < UUID_LENGTH;
  if (!isBeginning || given.length < LEAST) return given;
  const beginning = given.toLowerCase();
  const { queue } = which;
  const found = new Map<string, string>();
  for await (const task of client.items(isTask, '/api/v1/retries', { queue }, LOOKED_AT)) {
    const { message_id: id, destination, status } = task;
    if (id.startsWith(beginning)) found.set(id, `${destinationText(destination)}, ${status}`);
  }
  const [only, ...others] = found.keys();
  if (only !== undefined && others.length === 0) return only;
  if (only === undefined) {
    throw new CommandError(
      `None of the newest ${LOOKED_AT} tasks has an id that begins with '${shown(given)}'. Give the whole id, as redrive list shows it.`,
      { code: 'TASK_UNKNOWN' },
    );
  }
  const lines = [...found].slice(0, LISTED).map(([id, what]) => `  ${shown(id)}  ${shown(what)}`);
  const more = found.size > LISTED ? `\n  and ${found.size - LISTED} more` : '';
  throw new CommandError(
    `${found.size} tasks have an id that begins with '${shown(given)}'. Give more of it:\n${lines.join('\n')}${more}`,
    { code: 'AMBIGUOUS' },
  );
}
