import { parseArgs } from 'node:util';
import { suiteNames } from './suites.ts';

export interface Options {
  suites: string[];
  cases: string[];
  json: boolean;
  quick: boolean;
  strict: boolean;
  help: boolean;
  /** What could not be understood. */
  faults: string[];
}

export function readOptions(args: string[]): Options {
  const nothing = { suites: [], cases: [], json: false, quick: false, strict: false, help: false };
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        case: { type: 'string', multiple: true },
        json: { type: 'boolean' },
        quick: { type: 'boolean' },
        strict: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    });
    const { case: cases = [], ...flags } = values;
    const faults = positionals
      .filter((name) => !suiteNames.includes(name))
      .map((name) => `no suite ${name}; there are: ${suiteNames.join(', ')}`);
    return {
      ...nothing,
      ...flags,
      suites: positionals,
      cases: cases.flatMap((list) => list.split(',')).filter((name) => name !== ''),
      faults,
    };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // Node goes on about positional arguments, which is of no help here.
    return { ...nothing, faults: [message.split('. To specify')[0] ?? message] };
  }
}
