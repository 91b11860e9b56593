import { AssertionError } from 'node:assert';
import { inspect, isDeepStrictEqual } from 'node:util';
import { destinationOf, type SubmitOptions } from '../intake/submission.ts';
import type { Submitted } from '../intake/submitter.ts';
import type { Destination } from '../model/task.ts';

/** Something that was accepted, as it was submitted. */
export interface SubmittedTask<Payload = unknown> {
  id: string;
  /** The handler's name, or the address elsewhere. */
  to: string;
  destination: Destination;
  payload: Payload;
  options: SubmitOptions;
}

/** What is looked for: parts of a payload, however deep, or a test of one. */
export type Wanted<Payload> = Parts<Payload> | ((payload: Payload) => boolean);

type Parts<T> = T extends object ? { [Key in keyof T]?: Parts<T[Key]> } : T;

/** Everything that was submitted to an engine, and the checks on it. */
export class Submissions {
  readonly #all: SubmittedTask[] = [];

  /** One that was there already is no second submission. */
  add(to: unknown, payload: unknown, options: SubmitOptions, { id, status }: Submitted): void {
    if (status === 'duplicate') return;
    const destination = destinationOf(to);
    this.#all.push({ id, to: destination.address, destination, payload, options });
  }

  of(to?: string | Destination): SubmittedTask[] {
    if (to === undefined) return [...this.#all];
    const { kind, address } = destinationOf(to);
    return this.#all.filter(
      ({ destination }) => destination.kind === kind && destination.address === address,
    );
  }

  /** The newest that fits. */
  expect(to: string | Destination, wanted: unknown): SubmittedTask {
    const found = this.of(to).findLast(({ payload }) => fits(payload, wanted));
    if (found) return found;
    throw new AssertionError({
      message: `Nothing such was submitted to ${nameOf(to)}${saying(wanted)}.\n${this.#summary(to)}`,
      expected: wanted,
      actual: this.of(to).map(({ payload }) => payload),
      operator: 'expectSubmitted',
    });
  }

  expectNot(to: string | Destination, wanted: unknown): void {
    const found = this.of(to).filter(({ payload }) => fits(payload, wanted));
    if (found.length === 0) return;
    throw new AssertionError({
      message: `${found.length} such were submitted to ${nameOf(to)}${saying(wanted)}:\n${listOf(found)}`,
      expected: [],
      actual: found.map(({ payload }) => payload),
      operator: 'expectNotSubmitted',
    });
  }

  #summary(to: string | Destination): string {
    const there = this.of(to);
    if (there.length > 0) return `It got:\n${listOf(there)}`;
    const others = new Set(this.#all.map((one) => nameOf(one.destination)));
    if (others.size === 0) return 'Nothing was submitted at all.';
    return `It got nothing; there were submissions to ${[...others].join(', ')}.`;
  }
}

const MAX_LISTED = 10;
const MAX_TEXT = 200;

function fits(payload: unknown, wanted: unknown): boolean {
  if (wanted === undefined) return true;
  if (typeof wanted === 'function') return (wanted as (value: unknown) => boolean)(payload);
  return hasParts(payload, wanted);
}

/** Objects by the fields that are named, anything else as a whole. */
function hasParts(value: unknown, parts: unknown): boolean {
  if (!isPlainObject(parts)) {
    if (!Array.isArray(parts)) return isDeepStrictEqual(value, parts);
    return (
      Array.isArray(value) &&
      value.length === parts.length &&
      parts.every((part, i) => hasParts(value[i], part))
    );
  }
  if (typeof value !== 'object' || value === null) return false;
  const fields = value as Record<string, unknown>;
  return Object.entries(parts).every(([name, part]) => hasParts(fields[name], part));
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function nameOf(to: string | Destination): string {
  const { kind, address } = destinationOf(to);
  return kind === 'handler' || kind === 'http' ? `'${address}'` : `${kind} '${address}'`;
}

function saying(wanted: unknown): string {
  if (wanted === undefined) return '';
  return ` with ${typeof wanted === 'function' ? 'what was looked for' : textOf(wanted)}`;
}

function listOf(tasks: readonly SubmittedTask[]): string {
  const lines = tasks.slice(0, MAX_LISTED).map(({ payload }) => `  ${textOf(payload)}`);
  if (tasks.length > MAX_LISTED) lines.push(`  and ${tasks.length - MAX_LISTED} more`);
  return lines.join('\n');
}

function textOf(value: unknown): string {
  return inspect(value, { breakLength: Infinity, depth: 5, maxStringLength: MAX_TEXT });
}
