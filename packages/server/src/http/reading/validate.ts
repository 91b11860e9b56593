/** Checks the parts of a request by their schemas, compiled once. Bodies as they are; queries and paths come as texts. */
import type { FastifySchemaCompiler } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { Settings } from 'typebox/system';
import { schemaFaults, type WireFault } from './faults.ts';
import { Problem } from '../problem.ts';

// Eight unless told otherwise, and one field of an unknown name takes two.
Settings.Set({ maxErrors: 200 });

/** Checks a value; undefined: nothing is wrong with it. */
type Check = (value: unknown, where: WireFault['in']) => WireFault[] | undefined;

export function checkOf(schema: TSchema): Check {
  const validator = Compile(schema);
  return (value, where) =>
    validator.Check(value) ? undefined : schemaFaults(schema, validator.Errors(value), where);
}

const parts = { body: 'body', querystring: 'query', params: 'path', headers: 'header' } as const;

export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const where = parts[httpPart as keyof typeof parts];
  const check = checkOf(schema);
  const isOptional = Type.IsOptional(schema);
  const isOfTexts = where === 'body' || !hasOtherTypes(schema);
  return (given: unknown) => {
    // No body at all comes as null.
    if (isOptional && given === null) return { value: undefined };
    const value = isOfTexts ? given : fromTexts(schema, given);
    const faults = check(value, where);
    return faults ? { error: invalid(faults) } : { value };
  };
};

/** What no schema can say of a body. Its fields may hold anything. */
type Later = (body: Readonly<Record<string, unknown>>) => readonly WireFault[];

/** For a route whose handler finds more faults than a schema can: those of the schema do not hide them. */
export function bodyWith(later: Later): FastifySchemaCompiler<TSchema> {
  return (part) => {
    const validate = compileValidator(part);
    if (part.httpPart !== 'body') return validate;
    return (value: unknown) => {
      const checked = validate(value) as { error?: Problem };
      const { error } = checked;
      if (!error || !isObject(value)) return checked;
      return { error: invalid(joinFaults(error.faults, later(value))) };
    };
  };
}

/** A field that the schema has found wrong is not told twice, nor by what lies in it or around it. */
export function joinFaults(found: readonly WireFault[], later: readonly WireFault[]): WireFault[] {
  const isTold = ({ path }: WireFault) =>
    found.some((one) => isUnder(path, one.path) || (path !== '' && isUnder(one.path, path)));
  return [...found, ...later.filter((fault) => !isTold(fault))];
}

function isUnder(path: string, other: string): boolean {
  return path === other || path.startsWith(`${other}/`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function invalid(faults: readonly WireFault[]): Problem {
  const words = faults.length === 1 ? 'one fault' : `${faults.length} faults`;
  return new Problem('INVALID_REQUEST', `The request has ${words}.`, { faults });
}

/** Refuses a request with faults. */
export function refuseIf(faults: readonly WireFault[]): void {
  if (faults.length > 0) throw invalid(faults);
}

/** Other APIs take a bare list where this one takes an object with `items`. */
export function refuseList(body: unknown): void {
  if (!Array.isArray(body)) return;
  const message =
    'The body is a list. Send several items in one object: {"items": [...]}, at most 1000.';
  throw invalid([{ in: 'body', path: '', code: 'INVALID_VALUE', message }]);
}

/** Numbers and truths as what they are. Whatever does not look like one stays a text, and is refused as such. */
function fromTexts(schema: TSchema, given: unknown): unknown {
  const properties = Object(Reflect.get(schema, 'properties')) as Record<string, { type?: string }>;
  const value: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(Object(given) as object)) {
    const type = Object.hasOwn(properties, name) ? properties[name]?.type : undefined;
    value[name] = typeof text === 'string' ? fromText(text, type) : text;
  }
  return value;
}

/** Whether something of it is not a text: otherwise nothing has to be read from texts. */
function hasOtherTypes(schema: TSchema): boolean {
  const properties = Object(Reflect.get(schema, 'properties')) as Record<string, { type?: string }>;
  return Object.values(properties).some(({ type }) => type === 'integer' || type === 'boolean');
}

function fromText(text: string, type: string | undefined): unknown {
  if (type === 'integer' && /^-?\d{1,16}$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}
