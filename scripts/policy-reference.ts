import type { Field } from '../packages/core/src/options/fields.ts';
import { overrideFields, policyFields } from '../packages/core/src/policy/policy-fields.ts';
import { MAX_DURATION_MS } from '../packages/core/src/policy/duration.ts';

/** The comment above each field of the table: its description, in the schema and on the page. */
export function describeFields(source: string): Record<string, string> {
  const descriptions: Record<string, string> = {};
  for (const [, comment, name] of source.matchAll(
    /\/\*\* ([^*]*(?:\*(?!\/)[^*]*)*) \*\/\s+(\w+): \{/g,
  )) {
    descriptions[name as string] = comment as string;
  }
  for (const name of Object.keys(policyFields)) {
    if (!descriptions[name]) throw new Error(`The policy field ${name} has no description.`);
  }
  return descriptions;
}

/** JSON Schema 2020-12 of a policy as one writes it. */
export function policySchema(descriptions: Record<string, string>): object {
  const all: Record<string, object> = {};
  for (const [name, field] of Object.entries(policyFields)) {
    all[name] = { description: descriptions[name], ...schemaOf(field) };
  }
  const overrides = Object.fromEntries(overrideFields.map((name) => [name, all[name]]));
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'retry-policy.schema.json',
    title: 'Redrive retry policy',
    type: 'object',
    properties: { $schema: { type: 'string' }, ...all },
    additionalProperties: false,
    allOf: [
      {
        if: { properties: { strategy: { const: 'schedule' } }, required: ['strategy'] },
        then: { required: ['schedule'] },
      },
      {
        if: { required: ['schedule'] },
        then: { properties: { strategy: { const: 'schedule' } } },
      },
      {
        if: { properties: { jitter: { const: 'decorrelated' } }, required: ['jitter'] },
        then: {
          properties: { strategy: { const: 'exponential' }, schedule: false },
        },
      },
    ],
    $defs: {
      duration: {
        description: 'A number of ms, or a text: 250ms, 2s, 5m, 1h, 1d. At most 100 years.',
        anyOf: [
          { type: 'number', minimum: 0, maximum: MAX_DURATION_MS },
          { type: 'string', pattern: '^\\d{1,15}(\\.\\d{1,9})?(ms|s|m|h|d)$' },
        ],
      },
      someTime: {
        description: 'A duration of at least 1 ms.',
        anyOf: [
          { type: 'number', minimum: 1, maximum: MAX_DURATION_MS },
          { type: 'string', pattern: '^(?=.*[1-9])\\d{1,15}(\\.\\d{1,9})?(ms|s|m|h|d)$' },
        ],
      },
      override: { type: 'object', properties: overrides, additionalProperties: false },
    },
  };
}

/** The rows of the reference page. */
export function policyTable(descriptions: Record<string, string>): string {
  const rows = Object.entries(policyFields).map(([name, field]) => {
    const usual = 'default' in field ? `\`${JSON.stringify(field.default)}\`` : '';
    return `| \`${name}\` | ${takes(field)} | ${usual} | ${descriptions[name]} |`;
  });
  return ['| field | takes | default | what it says |', '|---|---|---|---|', ...rows, ''].join(
    '\n',
  );
}

function schemaOf(field: Field): object {
  const usual = 'default' in field ? { default: field.default } : {};
  switch (field.kind) {
    case 'integer':
    case 'number':
      return { type: field.kind, minimum: field.min, maximum: field.max, ...usual };
    case 'duration':
      return { $ref: `#/$defs/${field.min > 0 ? 'someTime' : 'duration'}`, ...usual };
    case 'durations':
      return {
        type: 'array',
        items: { $ref: '#/$defs/duration' },
        minItems: 1,
        maxItems: field.max,
      };
    case 'boolean':
      return { type: 'boolean', ...usual };
    case 'choice':
      return { enum: field.of, ...usual };
    case 'names':
      return {
        type: 'array',
        items: { type: 'string', minLength: 1, maxLength: 200, examples: field.known },
        maxItems: 100,
        ...usual,
      };
    case 'objects':
      return {
        type: 'object',
        additionalProperties: { $ref: '#/$defs/override' },
        maxProperties: field.max,
      };
  }
}

function takes(field: Field): string {
  switch (field.kind) {
    case 'integer':
      return `whole number, ${field.min} to ${field.max}`;
    case 'number':
      return `number, ${field.min} to ${field.max}`;
    case 'duration':
      return field.min > 0 ? 'duration above 0' : 'duration';
    case 'durations':
      return `list of 1 to ${field.max} durations`;
    case 'boolean':
      return 'true or false';
    case 'choice':
      return field.of.map((word) => `\`${word}\``).join(', ');
    case 'names':
      return 'list of names';
    case 'objects':
      return `object of at most ${field.max} overrides`;
  }
}
