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

export function invalid(faults: readonly WireFault[]): Problem {
  const words = faults.length === 1 ? 'one fault' : `${faults.length} faults`;
  return new Problem('INVALID_REQUEST', `The request has ${words}: see errors.`, { faults });
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
