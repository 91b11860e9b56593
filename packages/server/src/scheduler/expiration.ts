import type { Received } from '@redrive/engine';

/**
 * Whether the message had a time to live of its own, which is not carried on. Of a dead letter the broker takes the property
 * off and writes it into `x-death`; the newest entry, which stands first, tells of this message's last life.
 */
export function hasExpiration({ headers, extra }: Received): boolean {
  const { properties } = Object(extra) as { properties?: unknown };
  if ((Object(properties) as { expiration?: unknown }).expiration !== undefined) return true;
  const deaths = headers['x-death'];
  if (!Array.isArray(deaths)) return false;
  return (Object(deaths[0]) as Record<string, unknown>)['original-expiration'] !== undefined;
}
