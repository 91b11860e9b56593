/** Changes an item of the inbox: by what is given, or in an editor. */
import { isItemDetail } from '../answers.ts';
import type { Client } from '../client.ts';
import { exits, type Io } from '../command.ts';
import { editInEditor } from './editor.ts';
import { messageOf, messageOfBytes, readHeaders, usageError } from '../inputs.ts';
import type { Output } from '../terminal/output.ts';
import { differenceLines } from './review-item.ts';
import type { ItemDetail } from '../wire.ts';

interface EditOptions {
  payload: string | undefined;
  raw: boolean;
  header: readonly string[];
  destination: string | undefined;
  undo: boolean;
  replay: boolean;
}

export async function editItem(
  id: number,
  options: EditOptions,
  client: Client,
  output: Output,
  io: Io,
): Promise<number> {
  const { payload, header, destination, undo, replay } = options;
  const isGiven = payload !== undefined || header.length > 0 || destination !== undefined;
  if (undo && (isGiven || replay)) throw usageError('--undo stands alone.');
  const path = `/api/v1/review/${id}`;
  if (undo) {
    output.data(client.as(isItemDetail, await client.delete(`${path}/edit`)));
    output.say(`${id} is as it was.`);
    return exits.ok;
  }
  const headers = readHeaders(header);
  const rest = {
    ...(headers === undefined ? {} : { headers }),
    ...(destination === undefined ? {} : { destination }),
  };
  if (isGiven) {
    const message = payload === undefined ? {} : await messageOf(payload, options.raw, io);
    return write(path, { ...message, ...rest }, replay, client, output);
  }
  const before = client.as(isItemDetail, await client.get(path));
  const { bytes, extension } = editable(before);
  const edited = await editInEditor(bytes, extension, io);
  if (!edited) {
    output.data(before);
    output.say('Nothing was changed.');
    return exits.ok;
  }
  const message = messageOfBytes(edited.bytes, options.raw);
  if (extension === 'json' && !('payload' in message) && !options.raw) {
    throw usageError(
      `What you wrote is no JSON, as the payload was. It is kept in ${edited.file}; --payload @${edited.file} takes it when it is right, with --raw as it is.`,
    );
  }
  const code = await write(path, message, replay, client, output);
  edited.discard();
  return code;
}

async function write(
  path: string,
  changes: object,
  replay: boolean,
  client: Client,
  output: Output,
): Promise<number> {
  const item = client.as(isItemDetail, await client.put(`${path}/edit`, changes));
  output.say(...differenceLines(item.difference, false, output));
  if (!replay) {
    output.data(item);
    output.say(
      '',
      `redrive review replay ${item.id} sends it so; redrive review edit ${item.id} --undo takes it back.`,
    );
    return exits.ok;
  }
  output.data(client.as(isItemDetail, await client.post(`${path}/replay`)));
  output.say('', `${output.paint('green', '✔')} ${item.id} is sent again.`);
  return exits.ok;
}

/** What was edited before is edited on. */
function editable(item: ItemDetail): { bytes: Buffer; extension: 'json' | 'txt' } {
  const { edit } = item;
  const isEdited = edit !== undefined && ('payload' in edit || 'payload_base64' in edit);
  const { payload, payload_base64: base64 } = isEdited ? edit : item;
  return base64 === undefined
    ? { bytes: Buffer.from(`${JSON.stringify(payload ?? null, null, 2)}\n`), extension: 'json' }
    : { bytes: Buffer.from(base64, 'base64'), extension: 'txt' };
}
