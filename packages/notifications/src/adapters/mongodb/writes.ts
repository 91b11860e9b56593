/** Writes that need more than one command, since MongoDB is used without transactions. */
import { EngineError } from '@redrive/engine';
import type { Collection, Filter } from 'mongodb';
import type { Collections, Stored } from './connection.ts';
import type { RecordDocument } from './documents.ts';

/**
 * Replaces each document whose version is the one before, and answers the ids of those that were replaced. A bulk says
 * only how many that were. Where some were not, the documents are read again: each says which call wrote it last.
 */
export async function writtenOf(
  notifications: Collection<Stored>,
  documents: readonly RecordDocument[],
  writer: string,
): Promise<Set<string>> {
  const ids = documents.map(({ _id }) => _id);
  if (ids.length === 0) return new Set();
  const replacements = documents.map((document) => {
    const { _id, ...replacement } = document;
    return { replaceOne: { filter: { _id, version: document.version - 1 }, replacement } };
  });
  const { matchedCount } = await notifications.bulkWrite(replacements, { ordered: false });
  if (matchedCount === ids.length) return new Set(ids);
  if (matchedCount === 0) return new Set();
  const projection = { _id: 1, version: 1, writer: 1 };
  const found = await notifications.find({ _id: { $in: ids } }, { projection }).toArray();
  const byId = new Map(found.map((document) => [document._id, document]));
  const isMine = ({ _id }: RecordDocument) => byId.get(_id)?.['writer'] === writer;
  const mine = documents.filter(isMine).map(({ _id }) => _id);
  if (mine.length === matchedCount) return new Set(mine);
  // Somebody has written over some of them, or deleted them, since.
  const unknown = documents.filter((document) => {
    const now = byId.get(document._id);
    return !isMine(document) && (!now || now['version'] > document.version);
  });
  if (mine.length + unknown.length === matchedCount) {
    return new Set([...mine, ...unknown.map(({ _id }) => _id)]);
  }
  throw new EngineError(
    'STORE_UNAVAILABLE',
    'Other writers replaced some of these records at once, so it is unknown which of these writes took effect. Read the records again.',
  );
}

/** One call marks and deletes no more: it has to end in time. */
const PRUNED_AT_ONCE = 500;

/**
 * Deletes what is over, with its attempts. A record is marked first, by one atomic update that also makes its version
 * another one: whoever has read it before cannot write it any more. A crash in between leaves marked records, which the
 * next call finds again.
 */
export async function prunedOf(
  { notifications, attempts }: Collections,
  before: Date,
  limit: number,
): Promise<{ looked: number; deleted: number }> {
  const over: Filter<Stored> = { wake_at: null, updated_at: { $lt: before } };
  const found = await notifications
    .find(over, {
      projection: { _id: 1 },
      sort: { updated_at: 1 },
      limit: Math.min(limit, PRUNED_AT_ONCE),
    })
    .toArray();
  if (found.length === 0) return { looked: 0, deleted: 0 };
  const ids = found.map(({ _id }) => _id);
  await notifications.updateMany(
    { _id: { $in: ids }, ...over, pruned: { $ne: true } },
    { $set: { pruned: true }, $inc: { version: 1 } },
  );
  const marked = await notifications
    .find({ _id: { $in: ids }, pruned: true }, { projection: { _id: 1 } })
    .toArray();
  const gone = marked.map(({ _id }) => _id);
  await attempts.deleteMany({ notification_id: { $in: gone } });
  const { deletedCount } = await notifications.deleteMany({ _id: { $in: gone }, pruned: true });
  return { looked: found.length, deleted: deletedCount };
}
