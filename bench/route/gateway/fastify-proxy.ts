/** The bare proxy that the gateway is held against: no policy, no retry, no token. */
import proxy from '@fastify/http-proxy';
import fastify from 'fastify';

const app = fastify();
await app.register(proxy, { upstream: process.env['PROVIDER_URL'] ?? '', prefix: '/gateway/chat' });
const url = await app.listen({ port: 0, host: '127.0.0.1' });
console.log(JSON.stringify({ msg: 'listening', url }));
console.log(JSON.stringify({ msg: 'ready' }));
