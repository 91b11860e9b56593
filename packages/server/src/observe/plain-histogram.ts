/** A histogram by one label that counts in plain arrays: for what happens a hundred thousand times a second. */
import type { Registry } from 'prom-client';

interface Options {
  name: string;
  help: string;
  label: string;
  /** Every value that the label has. */
  values: readonly string[];
  buckets: readonly number[];
  register: Registry;
}

export interface PlainSeries {
  observe(value: number): void;
}

/** What prom-client asks of a metric, and what the reference shows. */
export class PlainHistogram {
  readonly name: string;
  readonly help: string;
  readonly type = 'histogram';
  readonly labelNames: readonly string[];
  readonly #label: string;
  readonly #series: ReadonlyMap<string, Series>;

  constructor({ name, help, label, values, buckets, register }: Options) {
    this.name = name;
    this.help = help;
    this.#label = label;
    this.labelNames = [label];
    this.#series = new Map(values.map((value) => [value, new Series(buckets)]));
    register.registerMetric(this as never);
  }

  series(value: string): PlainSeries {
    const found = this.#series.get(value);
    if (!found) throw new Error(`${this.name} has no ${this.#label} '${value}'`);
    return found;
  }

  /** In the form of prom-client. */
  async get() {
    const values = [...this.#series].flatMap(([value, series]) => {
      const labels = { [this.#label]: value };
      return series.values(this.name, labels);
    });
    return { name: this.name, help: this.help, type: this.type, values, aggregator: 'sum' };
  }

  reset(): void {
    for (const series of this.#series.values()) series.reset();
  }
}

class Series implements PlainSeries {
  readonly #buckets: readonly number[];
  /** One more than there are buckets: what is over all of them. */
  readonly #counts: number[];
  #sum = 0;

  constructor(buckets: readonly number[]) {
    this.#buckets = buckets;
    this.#counts = new Array<number>(buckets.length + 1).fill(0);
  }

  observe(value: number): void {
    let i = 0;
    while (i < this.#buckets.length && value > this.#buckets[i]!) i++;
    this.#counts[i]! += 1;
    this.#sum += value;
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

  reset(): void {
    this.#counts.fill(0);
    this.#sum = 0;
  }
}
