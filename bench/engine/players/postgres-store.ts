import type { Store } from '@redrive/engine';
import { postgres } from '@redrive/engine/postgres';

export function storeInPostgres(url: string): Store {
  return postgres({ url });
}
