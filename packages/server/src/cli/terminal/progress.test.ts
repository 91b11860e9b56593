import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { LiveArea, pause, progressLine, untilInterrupted } from './progress.ts';
import { terminalOf, visibleLength } from './terminal.ts';

describe('lines that are drawn again', () => {
  it('go over those that were there, however many', () => {
    const { area, text } = areaOn();
    area.draw(['a', 'b']);
    area.draw(['c']);
    area.end();
    expect(text()).toBe(
      '\u001b[?25la\u001b[K\nb\u001b[K\n\u001b[J' +
        '\u001b[2A\rc\u001b[K\n\u001b[J' +
        '\u001b[?25h',
    );
  });

  it('can be taken away', () => {
    const { area, text } = areaOn();
    area.draw(['a']);
    area.clear();
    area.clear();
    expect(text()).toContain('\u001b[1A\r\u001b[J');
    area.end();
    area.end();
    expect(text().split('\u001b[?25h')).toHaveLength(2);
  });

  it('are never more than the terminal has', () => {
    const { area, text } = areaOn(3);
    area.draw(['a', 'b', 'c', 'd']);
    expect(text()).not.toContain('c');
  });
});

describe('a progress bar', () => {
  const terminal = terminalOf({ columns: 80 }, {});

  it('says how far it is', () => {
    expect(progressLine(612, 1000, terminal)).toMatch(/^█{24}▌·{15} {3}61 % {2}612 of 1,000$/);
    expect(progressLine(0, 0, terminal)).toContain('  0 %  0 of 0');
  });

  it('is as wide at every step', () => {
    const widths = [0, 1, 499, 999, 1000].map((done) =>
      visibleLength(progressLine(done, 1000, terminal)),
    );
    expect(
      new Set(widths.map((width, i) => width - String([0, 1, 499, 999, '1,000'][i]).length)).size,
    ).toBe(1);
  });
});

describe('an interrupt', () => {
  it.each(['SIGINT', 'SIGTERM'])('by %s aborts, and is listened to once', (name) => {
    const from = new EventEmitter();
    const { signal } = untilInterrupted(from);
    from.emit(name);
    expect(signal.aborted).toBe(true);
    expect(from.listenerCount('SIGINT') + from.listenerCount('SIGTERM')).toBe(0);
  });

  it('is nobody’s business any more when the work is over', () => {
    const from = new EventEmitter();
    {
      using interrupt = untilInterrupted(from);
      expect(interrupt.signal.aborted).toBe(false);
      expect(from.listenerCount('SIGINT')).toBe(1);
    }
    expect(from.listenerCount('SIGINT')).toBe(0);
  });

  it('ends a pause at once', async () => {
    const controller = new AbortController();
    const paused = pause(1e9, controller.signal);
    controller.abort();
    await expect(paused).resolves.toBeUndefined();
    await expect(pause(1, new AbortController().signal)).resolves.toBeUndefined();
  });
});

function areaOn(rows?: number): { area: LiveArea; text: () => string } {
  let text = '';
  return { area: new LiveArea((part) => (text += part), rows), text: () => text };
}
