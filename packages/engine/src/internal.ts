/** For Redrive's own packages. Not part of the public interface: it may change in any release. */
export { Coalescer } from './coalescer.ts';
export { type Host, hostOf } from './host.ts';
export { loadPeer } from './peer.ts';
export { closeAll, pause, persist, within } from './patience.ts';
