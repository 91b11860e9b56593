/** What the device service answered. Pure. */
import type { DeviceFacts } from '../model/assess.ts';
import { platformOf } from '../platforms/response.ts';

/** Undefined: nobody can read it. A device that the service does not know is unknown, not inactive. */
export function readDevice(status: number, text: string): DeviceFacts | undefined {
  if (status === 404) return {};
  if (status !== 200) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { active, platform, last_seen, registered_at } = value as Record<string, unknown>;
  if (typeof active !== 'boolean') return undefined;
  const known = platformOf(platform);
  const lastSeenMs = timeOf(last_seen);
  const registeredAtMs = timeOf(registered_at);
  return {
    active,
    ...(known === undefined ? {} : { platform: known }),
    ...(lastSeenMs === undefined ? {} : { lastSeenMs }),
    ...(registeredAtMs === undefined ? {} : { registeredAtMs }),
  };
}

function timeOf(value: unknown): number | undefined {
  const ms = typeof value === 'string' ? Date.parse(value) : value;
  return typeof ms === 'number' && Number.isFinite(ms) ? ms : undefined;
}
