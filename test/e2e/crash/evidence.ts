/** Reads all that a store has. */
import type { InboxItem, Store, Task } from '@redrive/engine';

const PAGE = 1000;

export function allTasks(store: Store): Promise<Task[]> {
  return all((page) => store.list(page));
}

export function allItems(store: Store): Promise<InboxItem[]> {
  return all(async (page) => (await store.items(page)).items);
}

export async function isWorkedOff(store: Store): Promise<boolean> {
  return (await store.list({ status: 'pending', limit: 1 })).length === 0;
}

async function all<T extends { id: number }>(
  read: (page: { before?: number; limit: number }) => Promise<T[]>,
): Promise<T[]> {
  const found: T[] = [];
  for (;;) {
    const last = found.at(-1);
    const page = await read({ limit: PAGE, ...(last ? { before: last.id } : {}) });
    found.push(...page);
    if (page.length < PAGE) return found;
  }
}
