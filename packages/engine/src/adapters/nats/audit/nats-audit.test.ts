import { type JetStreamManager, jetstreamManager, StorageType } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { type NatsServer, startNats } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { ConfigError } from 'redrive';
import { afterAll, beforeAll, describe, expect, it, test, vi } from 'vitest';
import { createEngine } from '../../../engine.ts';
import { EngineError } from '../../../errors.ts';
import type { AuditEvent } from '../../../ports/audit.ts';
import { auditSuite, type OpenedAudit } from '../../../testing/audit/audit-suite.ts';

import { memory } from '../../memory/index.ts';
import { natsAudit } from '../index.ts';

const event: AuditEvent = { event_type: 'retry_attempt', timestamp: '2026-01-01T00:00:00.000Z' };

for (const version of ['2.9', '2.15'] as const) {
  describeService(`NATS ${version}`, () => {
    let server: NatsServer;
    let connection: NatsConnection;
    let manager: JetStreamManager;
    let subjects = 0;

    beforeAll(async () => {
      server = await startNats({ version, settings: ['max_payload: 200000'] });
      connection = await connected(server.url);
      manager = await jetstreamManager(connection);
    });
    afterAll(async () => {
      await connection.close();
      await server.stop();
    });

    /** What was received is a message on the way: it is there when the server has answered after it. */
    async function openCore(): Promise<OpenedAudit> {
      const subject = `audit.core.${subjects++}`;
      const listener = await connected(server.url);
      const found: AuditEvent[] = [];
      listener.subscribe(subject, {
        callback: (_, message) => void found.push(message.json<AuditEvent>()),
      });
      await listener.flush();
      return {
        sink: natsAudit(connection, { subject, jetStream: false }),
        written: async () => {
          await listener.flush();
          return found;
        },
        close: () => listener.close(),
      };
    }

    async function openStream(): Promise<OpenedAudit> {
      const name = `AUDIT${subjects++}`;
      const subject = `audit.stream.${name}`;
      await manager.streams.add({ name, subjects: [subject], storage: StorageType.Memory });
      return {
        sink: natsAudit(connection, { subject }),
        written: () => heldBy(name),
        close: async () => void (await manager.streams.delete(name)),
      };
    }

    async function heldBy(name: string): Promise<AuditEvent[]> {
      const { state } = await manager.streams.info(name);
      const found: AuditEvent[] = [];
      for (let seq = 1; seq <= state.last_seq; seq++) {
        found.push((await manager.streams.getMessage(name, { seq }))!.json<AuditEvent>());
      }
      return found;
    }

    describe('the audit trail on a subject', () => {
      for (const { name, skip, run: assertCase } of auditSuite({ open: openCore })) {
        test.skipIf(skip)(`of core NATS ${name}`, () => assertCase());
      }
      for (const { name, skip, run: assertCase } of auditSuite({ open: openStream })) {
        test.skipIf(skip)(`of JetStream ${name}`, () => assertCase());
      }
    });

    it('takes the trail of an engine', async () => {
      const opened = await openStream();
      // By the real clock: a virtual one would be over before NATS answers.
      const engine = createEngine({
        store: memory(),
        audit: opened.sink,
        policy: { maxAttempts: 1 },
      });
      engine.handle('fail', () => {
        throw new Error('no');
      });
      await engine.start();
      await engine.submit('fail', {});
      await vi.waitFor(
        async () => {
          const types = (await opened.written()).map((one) => one.event_type);
          expect(types).toEqual(['policy_registered', 'retry_exhausted']);
        },
        { timeout: 20_000 },
      );
      await engine.stop();
      await opened.close();
    });

    it('says that no stream takes the subject, and what to do', async () => {
      const failed = natsAudit(connection, { subject: 'nobody.has.this' }).write([event]);
      await expect(failed).rejects.toThrow(EngineError);
      await expect(failed).rejects.toMatchObject({ code: 'AUDIT_SINK_FAILED' });
      await expect(failed).rejects.toThrow(
        'No JetStream stream takes the subject nobody.has.this. Add one: nats stream add AUDIT --subjects nobody.has.this.',
      );
    });

    it('does not take the answer of a subscriber for an acknowledgement', async () => {
      for (const answer of ['thanks', '7', '{}', '{"stream":""}']) {
        const subject = `audit.answered.${subjects++}`;
        connection.subscribe(subject, {
          max: 1,
          callback: (_, message) => void message.respond(answer),
        });
        const failed = natsAudit(connection, { subject }).write([event]);
        await expect(failed, answer).rejects.toThrow(/^No JetStream stream takes the subject/);
      }
    });

    it('says why a stream refused an event', async () => {
      const name = `AUDIT${subjects++}`;
      const subject = `audit.small.${name}`;
      await manager.streams.add({
        name,
        subjects: [subject],
        storage: StorageType.Memory,
        max_msg_size: 100,
      });
      const large = { ...event, exception_message: 'x'.repeat(1000) };
      await expect(natsAudit(connection, { subject }).write([event, large])).rejects.toThrow(
        `JetStream refused an event on ${subject}: message size exceeds maximum allowed.`,
      );
    });

    it('sends nothing of a batch with an event that is larger than the server takes', async () => {
      for (const opened of [await openCore(), await openStream()]) {
        const large = { ...event, exception_message: 'x'.repeat(200_000) };
        await expect(opened.sink.write([event, large])).rejects.toThrow(
          /^An event has 200\d\d\d bytes, and the server takes 200000/,
        );
        expect(await opened.written()).toEqual([]);
        await opened.close();
      }
    });

    it('fails where the connection is gone, and leaves the connection alone when it is closed', async () => {
      const own = await connected(server.url);
      const sinks = [true, false].map((jetStream) => natsAudit(own, { jetStream }));
      for (const sink of sinks) expect(sink.close).toBeUndefined();
      await own.close();
      await expect(sinks[0]!.write([event])).rejects.toThrow(
        /^No acknowledgement for events on redrive\.audit: .*closed/i,
      );
      await expect(sinks[1]!.write([event])).rejects.toThrow(/closed/i);
    });
  });
}

it('counts a batch of core NATS as written when the server has read it, not before', async () => {
  const flush = () => Promise.reject(new Error('disconnected'));
  const connection = {
    publish: () => undefined,
    request: () => Promise.reject(new Error()),
    flush,
  };
  const sink = natsAudit(connection, { jetStream: false });
  await expect(sink.write([event])).rejects.toThrow('disconnected');
  await sink.write([]);
});

describe('options', () => {
  it('with faults are refused, all at once', () => {
    const wrong = { subject: 'a.*.b', jetStream: 1, jetstream: true } as object;
    const call = () => natsAudit({} as never, wrong);
    expect(call).toThrow(ConfigError);
    expect(call).toThrow(/connection[^]*subject[^]*jetStream[^]*jetstream/);
  });

  it.each(['', 'a b', 'a.', '.a', 'a..b', 'a.>', 'x'.repeat(256), 7])(
    'know that %j is no subject to publish to',
    (subject) => {
      const connection = { request: () => undefined, publish: () => undefined } as never;
      expect(() => natsAudit(connection, { subject: subject as string })).toThrow(/subject/);
      expect(() => natsAudit(connection)).not.toThrow();
    },
  );
});

function connected(url: string): Promise<NatsConnection> {
  const { host, username, password } = new URL(url);
  return connect({ servers: host, user: username, pass: password });
}
