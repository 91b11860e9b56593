import { setTimeout as sleep } from 'node:timers/promises';
import { startProxy } from '@redrive/services';
import { CyodaServer, type MemberStream, StreamGone } from '@redrive/services/cyoda';
import { seededRandom } from 'redrive/testing';
import { expect, test } from 'vitest';
import { RedriveProcess, TemporaryFolder } from './redrive-process.ts';

const FOR_MS = 60_000;
const PER_TURN = 20;
const TURN_MS = 25;
const MEMBERS = 4;
/** A stream that is up answers long before. */
const LONGEST_MS = 15_000;

const lastAttemptTime = '2025-06-01T12:00:00Z';
const entityAt = (second: number) => ({
  lastAttemptTime,
  currentTime: `2025-06-01T12:0${second < 60 ? '0' : '1'}:${String(second % 60).padStart(2, '0')}Z`,
  jitterEnabled: false,
});

test(
  'in a storm of cuts, resets, stalls and restarts every request is answered once, or its stream was gone',
  { timeout: 240_000 },
  async () => {
    const random = seededRandom(Number(process.env['REDRIVE_FUZZ_SEED'] ?? 1));
    await using server = await CyodaServer.start();
    await using proxy = await startProxy(server.url.replace('grpc:', 'tcp:'));
    using folder = new TemporaryFolder();
    const url = proxy.url.replace('tcp:', 'grpc:');
    const start = () => new RedriveProcess(['cyoda', '--url', url, '--json'], folder.path);
    const members = Array.from({ length: MEMBERS }, start);
    await server.joined();

    const found = { answered: 0, gone: 0, wrong: 0, slow: 0 };
    const open = new Set<Promise<void>>();
    const ask = (stream: MemberStream, second: number) => {
      const beganMs = performance.now();
      const asked: Promise<void> = stream
        .criterion('isRetryDelayElapsed', entityAt(second), { as: second % 2 ? 'text' : 'bytes' })
        .then(
          ({ matches }) => {
            found.answered += 1;
            if (matches !== second >= 60) found.wrong += 1;
            if (performance.now() - beganMs > LONGEST_MS) found.slow += 1;
          },
          (error: unknown) => {
            if (!(error instanceof StreamGone)) throw error;
            found.gone += 1;
          },
        )
        .finally(() => open.delete(asked));
      open.add(asked);
    };
    const any = () => server.members[Math.floor(random() * server.members.length)];

    const untilMs = performance.now() + FOR_MS;
    const isOn = () => performance.now() < untilMs;
    const asking = async () => {
      while (isOn()) {
        for (let n = 0; n < PER_TURN; n++) {
          const stream = any();
          if (stream) ask(stream, 50 + Math.floor(random() * 20));
        }
        await sleep(TURN_MS);
      }
    };
    const keepingAlive = async () => {
      while (isOn()) {
        for (const stream of server.members) stream.keepAlive().catch(() => undefined);
        await sleep(5000);
      }
    };
    const troubles: (() => unknown)[] = [
      () => any()?.reset(),
      () => any()?.end(),
      () => any()?.end(14, 'going down'),
      () => any()?.sendHalf('EntityCriteriaCalculationRequest', '{"requestId":"never"}'),
      () => any()?.http2.session?.destroy(),
      () => server.goAway(),
      () => proxy.cut(),
      async () => {
        proxy.stall();
        await sleep(1000);
        proxy.resume();
      },
      async () => {
        // In order: what was asked before is answered.
        const index = Math.floor(random() * MEMBERS);
        members[index]!.signal('SIGTERM');
        await members[index]!.exit;
        members[index] = start();
      },
      async () => {
        const index = Math.floor(random() * MEMBERS);
        members[index]!.signal('SIGKILL');
        await members[index]!.exit;
        members[index] = start();
      },
    ];
    const troubling = async () => {
      for (let n = 0; isOn(); n++) {
        await sleep(500 + random() * 1500);
        await troubles[n % troubles.length]!();
      }
    };
    await Promise.all([asking(), keepingAlive(), troubling()]);

    // What is still open now was asked on streams that are up.
    const streams = server.members;
    await Promise.race([Promise.all(open), sleep(LONGEST_MS)]);
    const unanswered = streams.reduce((sum, stream) => sum + stream.waiting, 0);
    for (const member of members) await member[Symbol.asyncDispose]();
    await Promise.all(open);
    console.log(`soak: ${JSON.stringify(found)}`);
    expect(unanswered).toBe(0);
    expect(server.faults).toEqual([]);
    expect(found).toMatchObject({ wrong: 0, slow: 0 });
    expect(found.answered).toBeGreaterThan(1000);
    expect(found.gone).toBeGreaterThan(0);
  },
);
