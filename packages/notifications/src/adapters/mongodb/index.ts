import type { NotificationRepository } from '../../ports/repository.ts';
import { Reader } from '../../repository/unreadable.ts';
import { Connection } from './connection.ts';
import { type MongodbNotificationsOptions, readOptions } from './options.ts';
import { MongodbNotifications } from './repository.ts';

export type { MongodbNotificationsOptions } from './options.ts';

/**
 * Records in MongoDB 4.4 or later, which any number of processes may share: the collections `notifications`,
 * `delivery_attempts` and `devices`. A URL, or options. It needs no transactions. Writes are acknowledged by a majority.
 */
export function mongodbNotifications(
  given: string | MongodbNotificationsOptions,
): NotificationRepository {
  const settings = readOptions(given);
  return new MongodbNotifications(new Connection(settings), new Reader(settings.unreadable));
}
