/** What the schemas of several resources are made of. */
import { MAX_CURSOR } from '../reading/cursor.ts';
import { type TSchema, Type } from 'typebox';

/** One of a few words. */
export function choice<const Words extends readonly string[]>(
  words: Words,
  options: { description?: string; default?: Words[number] } = {},
) {
  return Type.Unsafe<Words[number]>({ type: 'string', enum: [...words], ...options });
}

/** The name of a lane, a queue or an event. No store takes the character NUL. */
export function name(maxLength: number) {
  return Type.String({ minLength: 1, maxLength, pattern: '^[^\\u0000]*$' });
}

export const Time = Type.String({ format: 'date-time', description: 'ISO 8601, UTC.' });

/** A time as somebody gives it. */
export const GivenTime = Type.String({
  format: 'date-time',
  description: 'A time with its zone, such as 2030-01-31T12:00:00Z.',
});

export const Uuid = Type.String({ format: 'uuid' });

export const Destination = Type.Object(
  {
    kind: Type.String({
      description: '`queue`, `http`, `handler`, or the kind of another broker.',
    }),
    address: Type.String({ description: "The queue's name, or the URL." }),
  },
  { description: 'Where a message goes.' },
);

/** A destination as somebody gives it. */
export const GivenDestination = Type.Union(
  [
    Type.String({ minLength: 1, maxLength: 2200 }),
    Type.Object(
      {
        kind: Type.String({ minLength: 1, maxLength: 32 }),
        address: Type.String({ minLength: 1, maxLength: 2048 }),
      },
      { additionalProperties: false },
    ),
  ],
  { description: "A URL, 'queue:NAME', 'nats:SUBJECT', 'kafka:TOPIC', or { kind, address }." },
);

/** The same in a query. */
export const DestinationText = Type.String({
  minLength: 1,
  maxLength: 2200,
  pattern: '^[^\\u0000]*$',
  description: 'A URL, `queue:NAME`, `nats:SUBJECT`, or `kafka:TOPIC`.',
});

export const GivenHeaders = Type.Unsafe<Record<string, string>>({
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'Sent along with the message. Texts only, 32 KiB in all; no credentials.',
});

export const Headers = Type.Unsafe<Readonly<Record<string, string>>>({
  type: 'object',
  additionalProperties: { type: 'string' },
});

export const failureClasses = ['transient', 'business', 'technical', 'unknown'] as const;

export const Failure = Type.Object(
  {
    class: choice(failureClasses),
    code: Type.Optional(Type.String()),
    message: Type.Optional(Type.String()),
    status: Type.Optional(Type.Integer({ description: 'Of an HTTP answer.' })),
    retry_after_ms: Type.Optional(Type.Number({ description: 'What the other side asked for.' })),
  },
  { description: 'Why the last execution failed.' },
);

export const Attempt = Type.Object(
  {
    attempt: Type.Integer({ description: 'The number of the execution, from 1 on.' }),
    generation: Type.Integer({ description: 'After how many replays.' }),
    at: Time,
    duration_ms: Type.Number(),
    error: Failure,
    answer: Type.Optional(Type.String({ description: 'HTTP: the first 4 KiB of the answer.' })),
  },
  { description: 'An execution that failed.' },
);

/** JSON where the payload is UTF-8 JSON of at most 1 MiB, otherwise base64. */
export const shownPayload = {
  payload: Type.Optional(
    Type.Unknown({ description: 'What the message says, where that is JSON of up to 1 MiB.' }),
  ),
  payload_base64: Type.Optional(
    Type.String({ description: 'Its bytes, where it is anything else.' }),
  ),
};

/** A schema that is kept under its name, and shown once in the document. */
export function ref(id: string) {
  return Type.Unsafe<unknown>({ $ref: `${id}#` });
}

/** What a query of a list has, beside its filters. */
export function page(most: number, usual: number) {
  return {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: most, default: usual, description: 'So many at most.' }),
    ),
    cursor: Type.Optional(
      Type.String({
        maxLength: MAX_CURSOR,
        description: 'The `next_cursor` of the page before.',
      }),
    ),
  };
}

/** A page of a list. */
export function listOf(item: TSchema, description: string) {
  return Type.Object(
    {
      items: Type.Array(item),
      next_cursor: Type.Unsafe<string | null>({
        type: ['string', 'null'],
        description:
          'Where to go on; null: this was all. A page may have few items and still go on.',
      }),
    },
    { description },
  );
}

export const Problem = Type.Object(
  {
    type: Type.String({ description: 'Always `about:blank`: look at `code`.' }),
    title: Type.String({ description: 'What the status means.' }),
    status: Type.Integer(),
    code: Type.String({ description: 'For programs. All of them are in the reference of errors.' }),
    detail: Type.String({ description: 'What is wrong, and what to do.' }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          in: choice(['body', 'query', 'path', 'header']),
          path: Type.String({ description: 'A JSON pointer; empty: all of it.' }),
          code: Type.String(),
          message: Type.String(),
        }),
        { description: 'Everything that is wrong with the request, each at its place.' },
      ),
    ),
  },
  {
    $id: 'Problem',
    description: 'What went wrong, by RFC 9457.',
    additionalProperties: true,
    examples: [
      {
        type: 'about:blank',
        title: 'Bad Request',
        status: 400,
        code: 'INVALID_REQUEST',
        detail: 'The request has one fault.',
        errors: [
          {
            in: 'body',
            path: '/retry_count',
            code: 'INVALID_VALUE',
            message: 'A whole number is needed.',
          },
        ],
      },
    ],
  },
);
