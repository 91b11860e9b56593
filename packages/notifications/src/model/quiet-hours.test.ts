import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { afterQuietHours, quietHoursFaults, quietHoursOf } from './quiet-hours.ts';

const night = { from: '22:00', to: '08:00', timeZone: 'Europe/Berlin' };
const after = (hours: typeof night, at: string) =>
  new Date(afterQuietHours(hours, Date.parse(at))).toISOString();

describe('quiet hours', () => {
  it('defer what lies in them to their end, in the zone of the recipient', () => {
    expect(after(night, '2026-01-10T21:30:15.500Z')).toBe('2026-01-11T07:00:00.000Z');
    expect(after(night, '2026-01-10T23:30:00Z')).toBe('2026-01-11T07:00:00.000Z');
    expect(after(night, '2026-07-10T20:00:00Z')).toBe('2026-07-11T06:00:00.000Z');
  });

  it('leave alone what lies outside: their end is outside, their beginning is not', () => {
    expect(after(night, '2026-01-10T12:00:00.123Z')).toBe('2026-01-10T12:00:00.123Z');
    expect(after(night, '2026-01-11T07:00:00Z')).toBe('2026-01-11T07:00:00.000Z');
    expect(after(night, '2026-01-10T21:00:00Z')).toBe('2026-01-11T07:00:00.000Z');
    expect(after(night, '2026-01-10T20:59:59.999Z')).toBe('2026-01-10T20:59:59.999Z');
  });

  it('end at the right moment in the nights when the clocks change', () => {
    expect(after(night, '2026-03-28T22:00:00Z')).toBe('2026-03-29T06:00:00.000Z');
    expect(after(night, '2026-10-24T21:00:00Z')).toBe('2026-10-25T07:00:00.000Z');
    // 02:30 does not exist in that night: the clocks go from 02:00 to 03:00.
    const gap = { from: '23:00', to: '02:30', timeZone: 'Europe/Berlin' };
    expect(after(gap, '2026-03-29T00:30:00Z')).toBe('2026-03-29T01:00:00.000Z');
    // 02:30 comes twice: the first one is the end.
    expect(after(gap, '2026-10-25T00:10:00Z')).toBe('2026-10-25T00:30:00.000Z');
    // Half an hour, on Lord Howe Island.
    const island = { from: '22:00', to: '07:00', timeZone: 'Australia/Lord_Howe' };
    expect(after(island, '2026-10-03T14:00:00Z')).toBe('2026-10-03T20:00:00.000Z');
  });

  it('are counted anew where the clocks change in the middle of them', () => {
    // The only waking minutes of the day do not exist in that night.
    const rest = { from: '02:30', to: '02:15', timeZone: 'America/New_York' };
    expect(after(rest, '2026-03-08T01:49:26Z')).toBe('2026-03-09T06:15:00.000Z');
    // At 03:45 it is 02:45 once more, which lies before them. The offset is 12:45 hours.
    const chatham = { from: '03:15', to: '23:45', timeZone: 'Pacific/Chatham' };
    expect(after(chatham, '2025-04-05T13:51:57Z')).toBe('2025-04-05T14:00:00.000Z');
    expect(after(chatham, '2025-04-05T14:30:00Z')).toBe('2025-04-06T11:00:00.000Z');
    // Two hours at once, in Antarctica.
    const troll = { from: '00:00', to: '02:00', timeZone: 'Antarctica/Troll' };
    expect(after(troll, '2026-03-29T00:10:00Z')).toBe('2026-03-29T01:00:00.000Z');
  });

  it('have their end outside, and nothing but themselves before it, whatever zone and time', () => {
    const time = fc.integer({ min: 0, max: 24 * 60 - 1 }).map((m) => {
      const two = (n: number) => String(n).padStart(2, '0');
      return `${two(Math.floor(m / 60))}:${two(m % 60)}`;
    });
    const zones = [
      'Europe/Berlin',
      'America/New_York',
      'Asia/Kathmandu',
      'Australia/Lord_Howe',
      'UTC',
    ];
    const years = { min: Date.UTC(2025, 0, 1), max: Date.UTC(2027, 0, 1) };
    fc.assert(
      fc.property(
        time,
        time,
        fc.constantFrom(...zones),
        fc.integer(years),
        (from, to, timeZone, atMs) => {
          fc.pre(from !== to);
          const hours = { from, to, timeZone };
          const endMs = afterQuietHours(hours, atMs);
          expect(endMs).toBeGreaterThanOrEqual(atMs);
          expect(afterQuietHours(hours, endMs)).toBe(endMs);
          if (endMs === atMs) return;
          expect(endMs - atMs).toBeLessThan(26 * 3_600_000);
          for (const part of [0, 0.3, 0.9]) {
            const between = Math.floor(atMs + (endMs - 1 - atMs) * part);
            expect(afterQuietHours(hours, between)).toBe(endMs);
          }
          expect(afterQuietHours(hours, endMs - 1)).toBe(endMs);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('of the notification outrank those of its user', () => {
    const notification = { recipient: { userId: 'u', quietHours: night } } as never;
    expect(quietHoursOf(notification)).toBe(night);
    const own = { ...night, to: '09:00' };
    expect(quietHoursOf({ ...(notification as object), quietHours: own } as never)).toBe(own);
  });

  it('are refused with a sentence that says what is wrong', () => {
    const said = (more: object) =>
      quietHoursFaults({ ...night, ...more }).map(({ field, message }) => `${field}: ${message}`);
    expect(said({})).toEqual([]);
    expect(said({ from: '9:00' })).toEqual([
      'from: "9:00" is not a time of day. Write it as 22:00.',
    ]);
    expect(said({ to: '24:00' })[0]).toContain('to: "24:00"');
    expect(said({ to: '22:00' })[0]).toContain('no length');
    expect(said({ timeZone: 'Mars/Olympus' })[0]).toContain('"Mars/Olympus"');
    expect(said({ from: undefined })).toEqual(['from: The time is missing. Write it as 22:00.']);
    expect(said({ timeZone: undefined })[0]).toContain('time_zone: The time zone is missing.');
    // All of them in one answer.
    expect(said({ from: 5, to: '8', timeZone: 'X' })).toHaveLength(3);
  });
});
