import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import * as determinism from './determinism.ts';
import { type Experiments, type Findings, stopTime } from './lab.ts';
import * as limits from './limits.ts';
import * as outcomes from './outcomes.ts';
import * as pressure from './pressure.ts';
import {
  libraries,
  peersTable,
  type Row,
  rows,
  type Trait,
  type Verdict,
  versions,
} from './table.ts';

const experiments: Record<Trait, Experiments> = {
  ...limits,
  ...pressure,
  ...outcomes,
  ...determinism,
};

const allRows = Object.entries<Row>(rows).map(([id, row]) => ({ id: id as Trait, ...row }));

describe.each(allRows)('$trait', ({ id, parts, verdicts, notes }) => {
  beforeEach(stopTime);
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each(libraries.map((library) => [library, verdicts[library]] as const))(
    '%s: %s',
    async (library, verdict) => {
      const findings = await experiments[id][library]();
      expect(Object.keys(findings)).toEqual(parts);
      const lacks = parts.filter((part) => !findings[part]);
      const noted = notes[library]?.lacks ?? (verdict === 'no' ? parts : []);
      expect({ verdict: verdictOf(findings), lacks }).toEqual({ verdict, lacks: noted });
    },
  );
});

describe('the table', () => {
  it.each(Object.entries(versions))('is about the installed %s %s', (name, version) => {
    const file = findPackageJSON(name, import.meta.url) ?? '';
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ name, version });
  });

  it('has a note for every partly', () => {
    const silent = allRows.flatMap(({ id, verdicts, notes }) =>
      libraries
        .filter((library) => verdicts[library] === 'partly' && !notes[library])
        .map((library) => `${id}: ${library}`),
    );
    expect(silent).toEqual([]);
  });

  it('is Markdown with a line per trait, and below it the notes by number', () => {
    const [head = '', rule = '', ...lines] = peersTable().split('\n');
    expect(cells(head)).toEqual(['', ...libraries]);
    expect(cells(rule)).toHaveLength(libraries.length + 1);
    const body = lines.slice(0, allRows.length).map(cells);
    expect(body.map(([trait]) => trait)).toEqual(allRows.map(({ trait }) => trait));
    const references = [...body.join().matchAll(/<sup>(\d+)<\/sup>/g)].map(([, number]) => number);
    const notes = lines.flatMap((line) => /^(\d+)\. /.exec(line)?.[1] ?? []);
    expect(notes).toEqual(references);
    expect(references.length).toBeGreaterThan(0);
  });
});

function verdictOf(findings: Findings): Verdict {
  const held = Object.values(findings);
  if (held.every(Boolean)) return 'yes';
  return held.some(Boolean) ? 'partly' : 'no';
}

function cells(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}
