/** For Redrive's own packages. Not part of the public interface: it may change in any release. */
export { type Column, few, Params, rowsOf } from './batch.ts';
export { type Connections, connectionsOf } from './connection/connections.ts';
export { Database, type PostgresPool, type Session } from './connection/database.ts';
export { readOptions } from './connection/options.ts';
export { quoteName } from './names.ts';
export { numberOf, type Row } from './rows.ts';
export { timeAt } from './times.ts';
