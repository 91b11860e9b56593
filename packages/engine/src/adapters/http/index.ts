export type { Tls } from './connections.ts';
export { http } from './delivery.ts';
export { type GuardedConnections, guardedConnections } from './guarded-connections.ts';
export { checkContext, headerFault, isConnectionHeader } from './headers.ts';
export type { Resolve } from './lookup.ts';
export type { HttpOptions } from './options.ts';
export type { Secret, Secrets } from './secrets.ts';
export { checkUrl } from './url.ts';
