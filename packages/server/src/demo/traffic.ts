/** Work for the demo: some tens of tasks a second, as a client hands them in. */
import type { Client } from '../cli/client.ts';
import type { Order, ReceiverName, Receivers } from './receivers.ts';
import { poisonsBy } from './story.ts';

interface Item {
  destination: string;
  payload: Order;
  ordering_key?: string;
  max_retries?: number;
}

const PER_SECOND: Readonly<Record<ReceiverName, number>> = { mail: 14, stock: 10, bank: 14 };
const ORDERED_PER_SECOND = 1;
const POISON_RETRIES = 3;

export class Traffic {
  readonly #client: Client;
  readonly #urls: Receivers['urls'];
  #orders = 0;
  #sequence = 0;
  #poisons = 0;
  #sent = { mail: 0, stock: 0, bank: 0 };

  constructor(client: Client, urls: Receivers['urls']) {
    this.#client = client;
    this.#urls = urls;
  }

  /** Hands in what is due by then and was not handed in yet. */
  async send(elapsedMs: number): Promise<void> {
    const items = this.#due(elapsedMs / 1000, elapsedMs);
    if (items.length > 0) await this.#client.post('/api/v1/retries', { items });
  }

  #due(seconds: number, elapsedMs: number): Item[] {
    const items: Item[] = [];
    for (const [name, perSecond] of Object.entries(PER_SECOND) as [ReceiverName, number][]) {
      for (; this.#sent[name] < seconds * perSecond; this.#sent[name]++) {
        items.push({ destination: this.#urls[name], payload: { order: ++this.#orders } });
      }
    }
    while (this.#sequence < seconds * ORDERED_PER_SECOND) {
      const payload = { order: ++this.#orders, sequence: ++this.#sequence };
      items.push({ destination: this.#urls.stock, payload, ordering_key: 'customer-7' });
    }
    for (; this.#poisons < poisonsBy(elapsedMs); this.#poisons++) {
      const payload = { order: ++this.#orders, poison: true as const };
      items.push({ destination: this.#urls.mail, payload, max_retries: POISON_RETRIES });
    }
    return items;
  }
}
