export { natsAudit, type NatsAuditConnection, type NatsAuditOptions } from './audit/nats-audit.ts';
