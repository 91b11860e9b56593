/** A histogram that counts in plain arrays: for what happens a hundred thousand times a second. */
import type { Registry } from 'prom-client';

interface Options {
  name: string;
  help: string;
  labels: readonly string[];
  buckets: readonly number[];
  register: Registry;
}

/** One set of labels. Whoever observes often keeps it, since to find it costs more than to count. */
export interface PlainSeries {
  observe(value: number): void;
}

/** What prom-client asks of a metric, and what the reference shows. */
export class PlainHistogram {
  readonly name: string;
  readonly help: string;
  readonly type = 'histogram';
  readonly labelNames: readonly string[];
  readonly #buckets: readonly number[];
  readonly #series = new Map<string, { labels: Record<string, string>; series: Series }>();

  constructor({ name, help, labels, buckets, register }: Options) {
    this.name = name;
    this.help = help;
    this.labelNames = labels;
    this.#buckets = buckets;
    register.registerMetric(this as never);
  }

  /** By the values of the labels, in their order. */
  labels(...values: readonly string[]): PlainSeries {
    const key = values.join('\n');
    let found = this.#series.get(key);
    if (!found) {
      const labels = Object.fromEntries(this.labelNames.map((name, i) => [name, values[i] ?? '']));
      this.#series.set(key, (found = { labels, series: new Series(this.#buckets) }));
    }
    return found.series;
  }

  /** In the form of prom-client. */
  async get() {
    const { name, help, type } = this;
    const all = [...this.#series.values()];
    const values = all.flatMap(({ labels, series }) => series.values(name, labels));
    return { name, help, type, values, aggregator: 'sum' };
  }

  /** The series stay: whoever observes often has kept them. */
  reset(): void {
    for (const { series } of this.#series.values()) series.reset();
  }
}

class Series implements PlainSeries {
  readonly #buckets: readonly number[];
  /** One more than there are buckets: what is over all of them. */
  readonly #counts: number[];
  #sum = 0;

  constructor(buckets: readonly number[]) {
    this.#buckets = buckets;
    this.#counts = Array.from({ length: buckets.length + 1 }, () => 0);
  }

  observe(value: number): void {
    let i = 0;
    while (i < this.#buckets.length && value > this.#buckets[i]!) i++;
    this.#counts[i]! += 1;
    this.#sum += value;
  }

  reset(): void {
    this.#counts.fill(0);
    this.#sum = 0;
  }

  values(name: string, labels: Readonly<Record<string, string>>) {
    let count = 0;
    const cumulated = this.#counts.map((own, i) => {
      count += own;
      const le = this.#buckets[i] ?? '+Inf';
      return { labels: { le, ...labels }, value: count, metricName: `${name}_bucket` };
    });
    return [
      ...cumulated,
      { labels, value: this.#sum, metricName: `${name}_sum` },
      { labels, value: count, metricName: `${name}_count` },
    ];
  }
}
