import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { type Document, type Operation, stage } from './harness.test.ts';
import { documentOf } from './openapi.ts';
import { operationIds } from './operation-ids.ts';

async function documentNow(): Promise<Document> {
  const { app } = await stage();
  return documentOf(app) as Document;
}

function operationsOf({ paths }: Document): [string, Operation][] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, one]): [string, Operation] => [
      `${method} ${path}`,
      one,
    ]),
  );
}

/** What this API says of OpenAPI 3.1, as a schema. */
const shape = {
  type: 'object',
  required: ['openapi', 'info', 'paths', 'components', 'tags', 'security'],
  properties: {
    openapi: { const: '3.1.0' },
    info: { type: 'object', required: ['title', 'version', 'description'] },
    paths: {
      type: 'object',
      propertyNames: { pattern: '^/' },
      additionalProperties: {
        type: 'object',
        propertyNames: { enum: ['get', 'post', 'put', 'patch', 'delete'] },
        additionalProperties: {
          type: 'object',
          required: ['operationId', 'summary', 'tags', 'x-role', 'responses'],
          properties: {
            summary: { type: 'string', minLength: 5 },
            tags: { type: 'array', minItems: 1, maxItems: 1 },
            'x-role': { enum: ['open', 'reader', 'operator', 'admin'] },
            parameters: {
              type: 'array',
              items: {
                type: 'object',
                required: ['name', 'in', 'required', 'schema'],
                properties: { in: { enum: ['path', 'query', 'header'] } },
              },
            },
            requestBody: {
              type: 'object',
              required: ['required', 'content'],
              properties: { content: { type: 'object', required: ['application/json'] } },
            },
            responses: {
              type: 'object',
              minProperties: 2,
              propertyNames: { pattern: '^[1-5]\\d\\d$' },
              additionalProperties: {
                type: 'object',
                required: ['description', 'content'],
                properties: {
                  description: { type: 'string', minLength: 3 },
                  content: { type: 'object', minProperties: 1 },
                },
              },
            },
          },
        },
      },
    },
  },
};

describe('the document', () => {
  it('is OpenAPI 3.1', async () => {
    const ajv = new Ajv2020({ allErrors: true });
    const check = ajv.compile(shape);
    check(await documentNow());
    expect(check.errors).toBeNull();
  });

  it('is served, and the same every time', async () => {
    const { app, get } = await stage();
    const answer = await get('/openapi.json');
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual(JSON.parse(JSON.stringify(documentOf(app))));
    expect((await get('/openapi.json')).text).toBe(answer.text);
  });

  it('has schemas that hold together', async () => {
    const document = await documentNow();
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(document, 'document');
    for (const [name, { responses, requestBody }] of operationsOf(document)) {
      const contents = [...Object.values(responses), ...(requestBody ? [requestBody] : [])];
      for (const schema of contents.flatMap(({ content }) => Object.values(content ?? {}))) {
        const local = JSON.stringify(schema.schema).replaceAll('"#/', '"document#/');
        expect(() => ajv.compile(JSON.parse(local) as object), name).not.toThrow();
      }
    }
    for (const name of Object.keys(document.components.schemas)) {
      expect(() => ajv.compile({ $ref: `document#/components/schemas/${name}` })).not.toThrow();
    }
  });

  it('has examples that its schemas allow', async () => {
    const document = await documentNow();
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(document, 'document');
    let checked = 0;
    const valid = (schema: object, example: unknown) => {
      const local = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')) as object;
      const check = ajv.compile(local);
      expect(check(example), ajv.errorsText(check.errors)).toBe(true);
      checked += 1;
    };
    for (const [, { requestBody }] of operationsOf(document)) {
      const media = Object(requestBody?.content['application/json']) as {
        schema: object;
        example?: unknown;
        examples?: Record<string, { value: unknown }>;
      };
      if (media.example !== undefined) valid(media.schema, media.example);
      for (const { value } of Object.values(media.examples ?? {})) valid(media.schema, value);
    }
    for (const schema of Object.values(document.components.schemas)) {
      for (const example of (schema as { examples?: unknown[] }).examples ?? []) {
        valid(schema, example);
      }
    }
    expect(checked).toBeGreaterThan(15);
  });

  it('has problems for every route that can be refused', async () => {
    for (const [name, { responses, 'x-role': role }] of operationsOf(await documentNow())) {
      const problems = Object.values(responses).filter(
        ({ content }) => content?.['application/problem+json'],
      );
      expect(problems.length, name).toBeGreaterThan(0);
      expect('401' in responses, name).toBe(role !== 'open');
    }
  });

  it('has no two operations of one name', async () => {
    const names = operationsOf(await documentNow()).map(
      ([, one]) => (one as { operationId?: string }).operationId,
    );
    expect(new Set(names).size).toBe(names.length);
  });

  it('names operations as a generated client would call them', async () => {
    const names = operationsOf(await documentNow()).map(([, one]) => one.operationId);
    for (const name of names) expect(name).toMatch(/^[a-z][A-Za-z]+$/);
    expect(names).toContain('submitRetry');
    expect(new Set(names)).toEqual(new Set(Object.values(operationIds)));
  });
});
