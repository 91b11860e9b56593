export { fastifyIdempotency, type FastifyIdempotencyOptions } from './plugin.ts';
