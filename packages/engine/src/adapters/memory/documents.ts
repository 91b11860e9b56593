import type { StateDocument } from '../../ports/schedule.ts';

/** Small shared documents, each with a version. */
export class Documents {
  readonly #all = new Map<string, { json: string; version: number }>();

  read(prefix: string): StateDocument[] {
    return [...this.#all]
      .filter(([key]) => key.startsWith(prefix))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, { json, version }]) => ({ key, value: JSON.parse(json) as unknown, version }));
  }

  has(key: string, version: number): boolean {
    return (this.#all.get(key)?.version ?? 0) === version;
  }

  write(key: string, value: unknown, version: number): void {
    this.#all.set(key, { json: JSON.stringify(value), version: version + 1 });
  }

  /** False: its version is not the one that was read. */
  drop(key: string, version: number): boolean {
    return version > 0 && this.has(key, version) && this.#all.delete(key);
  }

  delete(key: string): void {
    this.#all.delete(key);
  }
}
