/** What the service counts, as its page of metrics has it: `name{label="value"}` to number. */
export type Counters = ReadonlyMap<string, number>;

const wanted =
  /^((?:redrive_(?:duplicates|publish|leases_lost|intake_messages|inbox_entered|arrivals_known)_total|retries_\w+_total)(?:\{[^}]*\})?) (\S+)$/;

export function countersIn(page: string): Counters {
  const counters = new Map<string, number>();
  for (const line of page.split('\n')) {
    const [, name, value] = wanted.exec(line) ?? [];
    if (name === undefined) continue;
    // Thousands of origins are one line of the account.
    const series = name.replace(/queue="http[^"]*"/, 'queue="http"');
    counters.set(series, (counters.get(series) ?? 0) + Number(value));
  }
  return counters;
}

export function sum(one: Counters, other: Counters): Counters {
  const all = new Map(one);
  for (const [name, value] of other) all.set(name, (all.get(name) ?? 0) + value);
  return all;
}

/** Of one series; 0 where nothing was counted. */
export function valueOf(counters: Counters, name: string, cause: string): number {
  return counters.get(`${name}{cause="${cause}"}`) ?? 0;
}
