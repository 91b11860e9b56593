import { loadPeer } from '@redrive/engine/internal';
import type * as Mongodb from 'mongodb';

/** The errors that the driver throws. Undefined until it is loaded: before that it has thrown none. */
export let errors:
  | Pick<
      typeof Mongodb,
      'MongoBulkWriteError' | 'MongoError' | 'MongoParseError' | 'MongoServerError'
    >
  | undefined;

export async function loadMongodb(): Promise<typeof Mongodb> {
  const library = await loadPeer('The repository in MongoDB', 'mongodb', () => import('mongodb'));
  errors = library;
  return library;
}
