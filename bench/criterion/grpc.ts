import { join } from 'node:path';
import { cpuMs } from '../engine/cpu.ts';
import { figureOf, noiseNote, spreadOf, takeTurns } from '../engine/turns.ts';
import { share } from '../engine/verdicts.ts';
import type { Case } from '../result.ts';
import { type Program, redrive, Running } from '../service/stage/program.ts';
import { GrpcLoad } from './grpc-load.ts';

const LEAST = 0.7;
const OPEN = 256;
const WARM_UPS = 3;

type Name = 'redrive' | 'bare';
const names: readonly Name[] = ['redrive', 'bare'];
const programOf: Readonly<Record<Name, (url: string) => Program>> = {
  redrive: (url) => ({ script: redrive.script, args: ['cyoda', '--url', url] }),
  bare: (url) => ({ script: join(import.meta.dirname, 'bare/grpc-echo.ts'), args: [url] }),
};

interface Turn {
  perSecond: number;
  ownUs: number;
}

export const grpc: Case = {
  name: 'grpc',
  about: `evaluations by a Cyoda member over one stream, ${OPEN} requests open all the time`,
  async run({ turns, spanMs }) {
    const notes = [noiseNote()];
    await using own = await Member.start('redrive');
    await using bare = await Member.start('bare');
    const members = { redrive: own, bare };
    const play = (name: Name) => members[name].play(spanMs / 2);
    await takeTurns(names, WARM_UPS, play);
    const played = await takeTurns(names, turns, play);
    const figures = names.map((name) => {
      return [name, figureOf(played[name].map(({ perSecond }) => perSecond))] as const;
    });
    const rates = Object.fromEntries(figures.map(([name, { median }]) => [name, median]));
    const { redrive: rate = Number.NaN, bare: limit = Number.NaN } = rates;
    const cpu = names.map((name) => {
      return `${name} ${figureOf(played[name].map(({ ownUs }) => ownUs)).median.toFixed(1)}`;
    });
    return {
      metric: 'ops/s',
      redrive: rate,
      peers: { bare: limit },
      spread: spreadOf(figures),
      verdicts: [share(LEAST, rate, limit, 'a bare gRPC echo')],
      notes: [`CPU time of an evaluation in µs, own process: ${cpu.join(', ')}`, ...notes],
    };
  },
};

/** A member in a process of its own, and the server that asks it. */
class Member implements AsyncDisposable {
  readonly #load: GrpcLoad;
  readonly #running: Running;

  private constructor(load: GrpcLoad, running: Running) {
    this.#load = load;
    this.#running = running;
  }

  static async start(name: Name): Promise<Member> {
    const load = await GrpcLoad.start();
    return new Member(load, new Running(programOf[name](load.url), {}));
  }

  async play(forMs: number): Promise<Turn> {
    const before = cpuMs(this.#running.pid);
    const { answers, tookMs } = await this.#load.ask(forMs, OPEN);
    const usedMs = cpuMs(this.#running.pid) - before;
    return { perSecond: (answers * 1000) / tookMs, ownUs: (usedMs * 1000) / answers };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#load[Symbol.asyncDispose]();
    await this.#running.stop();
  }
}
