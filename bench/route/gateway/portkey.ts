/** Portkey's gateway. It listens on all addresses and takes a fixed port: both are changed before it starts. */
import { type AddressInfo, Server } from 'node:net';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// oxlint-disable-next-line unbound-method
const listen = Server.prototype.listen as (options: object, done?: () => void) => Server;
Server.prototype.listen = function onLoopback(this: Server) {
  return listen.call(this, { port: 0, host: '127.0.0.1' }, () => {
    const { port } = this.address() as AddressInfo;
    console.log(JSON.stringify({ msg: 'listening', url: `http://127.0.0.1:${port}` }));
    console.log(JSON.stringify({ msg: 'ready' }));
  });
} as typeof Server.prototype.listen;

process.argv.push('--headless');
const script = createRequire(import.meta.url).resolve('@portkey-ai/gateway/build/start-server.js');
await import(pathToFileURL(script).href);
