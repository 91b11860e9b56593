/** For Redrive's own packages. Not part of the public interface: it may change in any release. */
export { prepareRows, type Row } from './connection.ts';
export type { Database } from './database.ts';
export { databaseIn } from './open.ts';
