import type * as Sqlite from 'node:sqlite';
import { checkNode } from '../../node-version.ts';

/** SQLite of Node. Not by a static import: on an older Node that would fail without a word about Node. */
export function nodeSqlite(): typeof Sqlite {
  checkNode('The SQLite store');
  return process.getBuiltinModule('node:sqlite');
}
