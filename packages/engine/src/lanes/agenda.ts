/** Ids by a time, earliest first, of one time in the order of the ids: a binary heap that knows where each id is. */
export class Agenda<Id extends number | string = number> {
  readonly #entries: Entry<Id>[] = [];
  readonly #places = new Map<Id, number>();

  get size(): number {
    return this.#entries.length;
  }

  /** The time of an id that is in it. */
  at(id: Id): number | undefined {
    const place = this.#places.get(id);
    return place === undefined ? undefined : this.#entries[place]!.atMs;
  }

  /** Adds an id, or moves it to another time. */
  set(id: Id, atMs: number): void {
    const place = this.#places.get(id);
    if (place === undefined) {
      this.#entries.push({ id, atMs });
      this.#rise(this.#entries.length - 1);
    } else if (this.#entries[place]!.atMs !== atMs) {
      this.#entries[place] = { id, atMs };
      this.#sink(this.#rise(place));
    }
  }

  delete(id: Id): void {
    const place = this.#places.get(id);
    if (place === undefined) return;
    this.#places.delete(id);
    const last = this.#entries.pop()!;
    if (last.id === id) return;
    this.#entries[place] = last;
    this.#sink(this.#rise(place));
  }

  first(): Entry<Id> | undefined {
    return this.#entries[0];
  }

  /** The first ones up to a time, as long as they are wanted; it stays as it is. */
  takeWhile(untilMs: number, isWanted: (id: Id) => boolean): void {
    const taken: Entry<Id>[] = [];
    for (let top = this.first(); top && top.atMs <= untilMs; top = this.first()) {
      if (!isWanted(top.id)) break;
      taken.push(top);
      this.delete(top.id);
    }
    for (const { id, atMs } of taken) this.set(id, atMs);
  }

  #rise(from: number): number {
    const entry = this.#entries[from]!;
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!isBefore(entry, this.#entries[parent]!)) break;
      this.#put(place, this.#entries[parent]!);
      place = parent;
    }
    this.#put(place, entry);
    return place;
  }

  #sink(from: number): void {
    const entry = this.#entries[from]!;
    let place = from;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= this.#entries.length) break;
      const right = child + 1;
      if (right < this.#entries.length && isBefore(this.#entries[right]!, this.#entries[child]!)) {
        child = right;
      }
      if (!isBefore(this.#entries[child]!, entry)) break;
      this.#put(place, this.#entries[child]!);
      place = child;
    }
    this.#put(place, entry);
  }

  #put(place: number, entry: Entry<Id>): void {
    this.#entries[place] = entry;
    this.#places.set(entry.id, place);
  }
}

interface Entry<Id> {
  id: Id;
  atMs: number;
}

function isBefore<Id extends number | string>(a: Entry<Id>, b: Entry<Id>): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.id < b.id);
}
