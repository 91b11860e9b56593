import type { NatsConnection } from '@nats-io/transport-node';
import { EngineError } from '../../../errors.ts';
import { STREAM_NOT_FOUND } from '../idempotency/faults.ts';
import type { StreamSpec } from '../options.ts';
import { lackOf } from '../streams.ts';
import { faultOf, hasCode } from './faults.ts';
import { type OperationOptions, underCategory } from './operation.ts';
import { jetstreamManager, RetentionPolicy, StorageType } from '../library.ts';

/**
 * Creates a stream on disk under `NATS_STREAM_CREATE`. One that exists is used as it is, and refused where it lacks a
 * subject or has another retention.
 *
 * @example await createStream(connection, { name: 'ORDERS', subjects: ['orders.*'] });
 */
export async function createStream(
  connection: NatsConnection,
  spec: Omit<StreamSpec, 'onDemand'>,
  options: OperationOptions = {},
): Promise<void> {
  const { name, subjects, retention = 'limits', replicas = 1 } = spec;
  const doing = `create stream ${name}`;
  await underCategory('NATS_STREAM_CREATE', doing, options, async ({ timeoutMs }) => {
    try {
      const manager = await jetstreamManager(connection, { timeout: timeoutMs, checkAPI: false });
      // Also after a lost answer: then it is there.
      const info = await manager.streams.info(name).catch((error: unknown) => {
        if (!hasCode(error, STREAM_NOT_FOUND)) throw error;
        return manager.streams.add({
          name,
          subjects: [...subjects],
          storage: StorageType.File,
          retention: retention === 'workqueue' ? RetentionPolicy.Workqueue : RetentionPolicy.Limits,
          num_replicas: replicas,
        });
      });
      const why = lackOf(name, info.config.subjects, subjects);
      if (why !== undefined) throw new EngineError('NATS_REFUSED', why);
      if (info.config.retention !== retention) {
        throw new EngineError(
          'NATS_REFUSED',
          `Stream ${name} exists with the retention ${info.config.retention}, not ${retention}. It cannot be changed. Choose another name, or, when no message in it matters: nats stream rm ${name} --force`,
        );
      }
    } catch (error) {
      throw faultOf(error, connection, doing);
    }
  });
}
