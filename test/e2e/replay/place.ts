import type { Store } from '@redrive/engine';
import { postgres } from '@redrive/engine/postgres';
import { sqlite } from '@redrive/engine/sqlite';
import type { Place } from '../crash/job.ts';

export function storeAt(place: Place): Store {
  return place.kind === 'sqlite' ? sqlite(place.file) : postgres({ url: place.url });
}
