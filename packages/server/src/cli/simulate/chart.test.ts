import { describe, expect, it } from 'vitest';
import { terminalOf } from '../terminal/terminal.ts';
import { chartTop, drawChart, drawOutage, drawSparkline } from './chart.ts';
import type { Column } from './columns.ts';

const plain = terminalOf({}, {});
const coloured = terminalOf({ isTTY: true, columns: 80 }, {});

const facts: Parameters<typeof drawChart>[0] = {
  columns: [
    column({ down: 90 }),
    column({ down: 8 }),
    column({ overloaded: 6, served: 2 }),
    column({}),
    column({ served: 4 }),
    column({ served: 0.1 }),
  ],
  columnMs: 1000,
  capacity: 2,
  outageStart: 0,
  outageEnd: 2000,
};

describe('the chart', () => {
  it('stacks what was served, refused as overloaded and refused as down, told apart without colours', () => {
    expect(drawChart(facts, plain, 4)).toEqual([
      '        attempts per second',
      '      8 ┤▲░▓',
      '        │░░▓',
      '      4 ┤░░▓┄█┄',
      '        │░░█ █▁',
      '      0 ┼┬─────',
      '         0',
      '         ▔▔ down',
    ]);
  });

  it('is scaled by what the service meets when it is back, so that the rest can be seen', () => {
    expect(chartTop(facts)).toBe(8);
    expect(chartTop({ ...facts, outageEnd: 0 })).toBe(100);
    expect(chartTop({ ...facts, outageEnd: 60_000 })).toBe(4);
    expect(chartTop({ ...facts, columns: [column({})] })).toBe(1);
  });

  it('has no mark of an outage where there was none', () => {
    const lines = drawChart({ ...facts, outageEnd: 0 }, plain, 4);
    expect(lines.at(-1)).toBe('         0');
  });

  it('brackets a long outage, and underlines a short one', () => {
    expect(drawOutage(14, 20, plain.paint)).toBe('└─── down ───┘');
    expect(drawOutage(3, 20, plain.paint)).toBe('▔▔▔ down');
    expect(drawOutage(3, 5, plain.paint)).toBe('▔▔▔');
  });

  it('marks the time at round distances', () => {
    const columns = Array.from({ length: 30 }, () => column({ served: 1 }));
    expect(drawChart({ ...facts, columns }, plain, 4).slice(-3)).toEqual([
      '      0 ┼┬───────────────────┬─────────',
      '         0                   20 s',
      '         ▔▔ down',
    ]);
  });

  it('colours each part where there are colours', () => {
    const text = drawChart(facts, coloured, 4).join('\n');
    expect(text).toContain('\u001B[33m▓');
    expect(text).toContain('\u001B[32m█');
    expect(text).toContain('\u001B[31m░');
  });
});

describe('a sparkline', () => {
  it('has one block per column, as high as its load', () => {
    expect(drawSparkline(facts.columns, 8, plain)).toBe('███ ▄▁');
  });

  it('is coloured by the worst that happened', () => {
    const mixed = column({ served: 9, overloaded: 1 });
    expect(drawSparkline([mixed], 10, coloured)).toBe('\u001B[33m█\u001B[0m');
  });
});

function column(parts: Partial<Column>): Column {
  return { attempts: 0, served: 0, down: 0, overloaded: 0, timedOut: 0, ...parts };
}
