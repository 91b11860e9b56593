import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import amqp from 'amqplib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RabbitmqServer, startRabbitmq } from './index.ts';
import { describeService } from './vitest.ts';

/** What runs on this machine with this in its environment: whatever a server started has it. */
function processesOf(folder: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(folder);
    } catch {
      // No process, one that ended meanwhile, or somebody else's.
      return false;
    }
  });
}

describeService('RabbitMQ', () => {
  let server: RabbitmqServer;
  beforeAll(async () => {
    server = await startRabbitmq({ settings: { channel_max: '7' } });
  }, 60_000);
  afterAll(() => server.stop());

  it('takes settings, and its control program is let in', async () => {
    const asked = await server.ctl('eval', 'application:get_env(rabbit, channel_max).');
    expect(asked.trim()).toBe('{ok,7}');
  });

  it('ends every connection from its side', async () => {
    const connection = await amqp.connect(server.url);
    const closed = new Promise<string>((resolve) => {
      connection.on('error', () => undefined);
      connection.on('close', (error?: Error) => resolve(String(error)));
    });
    await server.closeConnections();
    expect(await closed).toContain('closed by a test');
  });

  it('raises the memory alarm and ends it', async () => {
    const connection = await amqp.connect(server.url);
    const channel = await connection.createChannel();
    const blocked = once(connection, 'blocked');
    const unblocked = once(connection, 'unblocked');
    await server.setMemoryAlarm(true);
    // Only who publishes is told.
    channel.publish('', 'nowhere', Buffer.from('x'));
    expect(await blocked).toEqual(['low on memory']);
    await server.setMemoryAlarm(false);
    await unblocked;
    await connection.close();
  });

  it.runIf(existsSync('/proc'))('leaves no process and no folder behind', async () => {
    const folder = (await server.ctl('eval', 'os:getenv("HOME").')).trim().replaceAll(`"`, '');
    expect(existsSync(folder)).toBe(true);
    expect(processesOf(folder).length).toBeGreaterThan(1);
    await server.stop();
    await expect.poll(() => processesOf(folder)).toEqual([]);
    expect(existsSync(folder)).toBe(false);
  });
});
