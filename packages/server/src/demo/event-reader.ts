import type { FeedEvent } from './board.ts';

/** Text in whatever pieces becomes events. */
export class EventReader {
  readonly #see: (event: FeedEvent) => void;
  #rest = '';

  constructor(see: (event: FeedEvent) => void) {
    this.#see = see;
  }

  read(text: string): void {
    const blocks = (this.#rest + text).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = new Map(block.split('\n').map(fieldOf));
      const data = fields.get('data');
      if (data === undefined) continue;
      const { lane } = JSON.parse(data) as { lane?: string };
      this.#see({ type: fields.get('event') ?? '', ...(lane === undefined ? {} : { lane }) });
    }
  }
}

function fieldOf(line: string): [string, string] {
  const at = line.indexOf(':');
  return [line.slice(0, at), line.slice(at + 1).trimStart()];
}
