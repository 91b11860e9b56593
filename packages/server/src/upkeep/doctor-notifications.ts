/** A look at what only notifications use: the urgent lane in Redis, and the records in MongoDB. */
import { withoutCredentials } from '../observe/log/redact.ts';
import { hiddenUrl } from '../settings/hide.ts';
import type { Settings } from '../settings/settings.ts';
import { silent } from './doctor-kafka.ts';
import { type Finding, findingsAbout } from './finding.ts';

const ofRedis = findingsAbout('redis');
const ofMongo = findingsAbout('mongodb');
const CONNECT_MS = 5000;

type Looked = Pick<Settings, 'notifications' | 'redisUrl' | 'mongodbUrl'>;

/** How Redis keeps what waits there. Makes nothing. */
export async function examineRedis({ notifications, redisUrl: url }: Looked): Promise<Finding[]> {
  if (notifications === 'off' || url === undefined) return [];
  const { redisDelayQueue } = await import('@redrive/engine/redis');
  const queue = redisDelayQueue({ url, log: silent });
  const at = hiddenUrl(url);
  try {
    const found = await queue.findings();
    return [
      ofRedis('fine', `Redis at ${at} lets us in.`),
      ...found.map(({ level, why, todo }) =>
        ofRedis(level === 'warn' ? 'warning' : 'note', why, todo),
      ),
    ];
  } catch (error) {
    const advice =
      'Is it running, and is REDIS_URL right? Urgent retries wait in their records until it is back; nothing is lost.';
    return [ofRedis('broken', `Redis at ${at} is not usable. ${textOf(error)}`, advice)];
  } finally {
    await queue.close();
  }
}

/** Whether MongoDB answers. Makes no indexes: the next start does. */
export async function examineMongo({ notifications, mongodbUrl: url }: Looked): Promise<Finding[]> {
  if (notifications === 'off' || url === undefined) return [];
  const { MongoClient } = await import('mongodb');
  const at = hiddenUrl(url);
  const client = new MongoClient(url, {
    connectTimeoutMS: CONNECT_MS,
    serverSelectionTimeoutMS: CONNECT_MS,
  });
  try {
    await client.db().command({ ping: 1 });
    return [ofMongo('fine', `MongoDB at ${at} lets us in.`)];
  } catch (error) {
    const advice =
      'Is it running, and is MONGODB_URL right? Without it no notification is taken or retried.';
    return [ofMongo('broken', `MongoDB at ${at} is not usable. ${textOf(error)}`, advice)];
  } finally {
    await client.close();
  }
}

function textOf(error: unknown): string {
  return withoutCredentials(error instanceof Error ? error.message : String(error));
}
