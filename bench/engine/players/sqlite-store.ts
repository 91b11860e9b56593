import type { Store } from '@redrive/engine';
import { sqlite } from '@redrive/engine/sqlite';

export function storeInFile(path: string): Store {
  return sqlite(path);
}
