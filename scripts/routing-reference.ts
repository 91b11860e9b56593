import type { RoutingField, RoutingFields } from '../packages/core/src/routing/routing-fields.ts';
import {
  backoffFields,
  breakerFields,
  legacyFallbackFields,
  providerFields,
  routingFields,
  ruleFields,
  stickyFields,
} from '../packages/core/src/routing/routing-fields.ts';

/** The tables by the name of their constant, in the order of the page, with the heading of each. */
const tables = {
  routingFields: { fields: routingFields, heading: 'The policy' },
  providerFields: { fields: providerFields, heading: '`providers[]`' },
  ruleFields: { fields: ruleFields, heading: '`fallbacks[]`' },
  backoffFields: { fields: backoffFields, heading: '`fallbacks[].backoff`' },
  stickyFields: { fields: stickyFields, heading: '`sticky`' },
  breakerFields: { fields: breakerFields, heading: '`circuit_breaker`' },
  legacyFallbackFields: { fields: legacyFallbackFields, heading: '`fallback` (legacy)' },
} as const satisfies Record<string, { fields: RoutingFields; heading: string }>;

type Descriptions = Record<string, Record<string, string>>;

/** The comment above each field of each table. */
export function describeRoutingFields(source: string): Descriptions {
  const descriptions: Descriptions = {};
  for (const [table, { fields }] of Object.entries(tables)) {
    const start = source.indexOf(`export const ${table} = {`);
    const text = source.slice(start, source.indexOf('satisfies RoutingFields', start));
    const found: Record<string, string> = {};
    for (const [, comment, name] of text.matchAll(/\/\*\* (.*) \*\/\s+(\w+): \{/g)) {
      found[name as string] = comment as string;
    }
    for (const name of Object.keys(fields)) {
      if (!found[name]) throw new Error(`The routing field ${table}.${name} has no description.`);
    }
    descriptions[table] = found;
  }
  return descriptions;
}

/** JSON Schema 2020-12 of a routing policy. */
export function routingSchema(descriptions: Descriptions): object {
  const whole = objectSchema(routingFields, descriptions) as { properties: object };
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'policy.schema.json',
    title: 'Redrive routing policy',
    ...whole,
    properties: { $schema: { type: 'string' }, ...whole.properties },
    anyOf: [
      { required: ['providers'], properties: { providers: { minItems: 1 } } },
      { required: ['weights'], properties: { weights: { minProperties: 1 } } },
    ],
    $defs: {
      value: { type: ['string', 'number', 'boolean'], maxLength: 200 },
    },
  };
}

/** The tables of the reference page. */
export function routingTables(descriptions: Descriptions): string {
  return Object.entries(tables)
    .map(([table, { fields, heading }]) => {
      const rows = Object.entries(fields as RoutingFields).map(([name, field]) => {
        const usual = 'default' in field ? `\`${JSON.stringify(field.default)}\`` : '';
        const needed = field.required ? 'required' : usual;
        return `| \`${name}\` | ${takes(field)} | ${needed} | ${descriptions[table]?.[name]} |`;
      });
      const head = ['| field | values | default | description |', '|---|---|---|---|'];
      return [`### ${heading}`, '', ...head, ...rows, ''].join('\n');
    })
    .join('\n');
}

function objectSchema(fields: RoutingFields, descriptions: Descriptions): object {
  const table = Object.entries(tables).find(([, each]) => each.fields === fields)?.[0] ?? '';
  const properties = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      { description: descriptions[table]?.[name], ...schemaOf(field, descriptions) },
    ]),
  );
  const required = Object.keys(fields).filter((name) => fields[name]?.required);
  return {
    type: 'object',
    properties,
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
    ...(fields === stickyFields ? { not: { required: ['ttl', 'ttl_seconds'] } } : {}),
  };
}

function schemaOf(field: RoutingField, descriptions: Descriptions): object {
  const usual = 'default' in field ? { default: field.default } : {};
  switch (field.kind) {
    case 'integer':
    case 'number':
      return { type: field.kind, minimum: field.min, maximum: field.max, ...usual };
    case 'boolean':
      return { type: 'boolean', ...usual };
    case 'choice':
      return { enum: field.of, ...usual };
    case 'text':
      return { type: 'string', pattern: field.pattern, maxLength: field.maxLength, ...usual };
    case 'object':
      return objectSchema(field.of, descriptions);
    case 'list':
      return {
        type: 'array',
        maxItems: field.max,
        items: objectSchema(field.of, descriptions),
      };
    case 'weights':
      return {
        type: 'object',
        maxProperties: field.max,
        propertyNames: { pattern: providerFields.name.pattern, maxLength: 100 },
        additionalProperties: { type: 'integer', minimum: 0, maximum: 100 },
      };
    case 'conditions':
      return {
        type: 'object',
        maxProperties: field.max,
        propertyNames: { minLength: 1, maxLength: 200 },
        additionalProperties: {
          anyOf: [
            { $ref: '#/$defs/value' },
            { type: 'array', maxItems: field.maxValues, items: { $ref: '#/$defs/value' } },
          ],
        },
      };
    case 'texts':
      return { type: 'array', maxItems: field.max, items: { $ref: '#/$defs/value' } };
    case 'anything':
      return {};
  }
}

function takes(field: RoutingField): string {
  switch (field.kind) {
    case 'integer':
      return `whole number, ${field.min} to ${field.max}`;
    case 'number':
      return `number, ${field.min} to ${field.max}`;
    case 'boolean':
      return 'true or false';
    case 'choice':
      return field.of.map((word) => `\`${word}\``).join(', ');
    case 'text':
      return `text, \`${field.pattern}\`, at most ${field.maxLength} characters`;
    case 'object':
      return 'object, see below';
    case 'list':
      return `list of at most ${field.max} objects, see below`;
    case 'weights':
      return `object of at most ${field.max} weights, 0 to 100, by name`;
    case 'conditions':
      return `object of at most ${field.max} keys, each with a value or a list of at most ${field.maxValues}`;
    case 'texts':
      return `list of at most ${field.max} texts, numbers or booleans`;
    case 'anything':
      return 'anything';
  }
}
