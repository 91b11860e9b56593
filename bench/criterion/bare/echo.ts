/** The limit of the HTTP cases: fastify with its own JSON, which answers every body with that body. */
import { once } from 'node:events';
import fastify from 'fastify';

const app = fastify({ bodyLimit: 64 * 1024 * 1024 });
app.post('/api/v1/criteria/:name', ({ body }, reply) => reply.send(body));
const address = await app.listen({ host: '127.0.0.1', port: 0 });
console.log(JSON.stringify({ msg: 'listening', url: address }));
console.log('{"msg":"ready"}');
await once(process, 'SIGTERM');
process.exit();
