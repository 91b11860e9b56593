/** What the settings of the audit trail need beside their kinds. */
import type { Fault } from 'redrive';
import type { Settings } from './settings.ts';
import { variables } from './variables.ts';

type Needed = Pick<
  Settings,
  'audit' | 'auditSink' | 'auditSubject' | 'auditRetentionDays' | 'natsUrl' | 'logLevel'
>;

/** Levels at which no line of the trail would be written. */
const quiet: ReadonlySet<string> = new Set(['warn', 'error', 'fatal', 'silent']);

export function checkAudit(
  settings: Needed,
  written: ReadonlySet<string>,
): { faults: Fault[]; warnings: string[] } {
  const { audit, auditSink, natsUrl, logLevel } = settings;
  const faults: Fault[] = [];
  const warnings: string[] = [];
  const isNats = auditSink === 'nats' || auditSink === 'nats-core';
  const fault = (message: string) =>
    faults.push({ path: variables.auditSink.env, code: 'INVALID_VALUE', message });
  if (audit && isNats && natsUrl === undefined) {
    fault(`'${auditSink}' needs a server. Give NATS_URL, or choose another sink.`);
  }
  if (audit && auditSink === 'log' && quiet.has(logLevel)) {
    fault(
      `'log' writes lines of the level info, and REDRIVE_LOG_LEVEL=${logLevel} drops them. Use info, debug or trace, or choose another sink.`,
    );
  }
  const idle = (name: 'auditSubject' | 'auditRetentionDays', why: string) => {
    const { env, default: usual } = variables[name];
    if (written.has(env) && settings[name] !== usual)
      warnings.push(`${env}: has no effect with ${why}.`);
  };
  if (!isNats) idle('auditSubject', `REDRIVE_AUDIT_SINK=${auditSink}`);
  if (auditSink !== 'store') idle('auditRetentionDays', `REDRIVE_AUDIT_SINK=${auditSink}`);
  return { faults, warnings };
}
