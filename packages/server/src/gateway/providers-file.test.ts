import { guardedConnections } from '@redrive/engine/http';
import { parseRoutingPolicy } from 'redrive';
import { describe, expect, it, vi } from 'vitest';
import { ProviderRegistry } from './provider-registry.ts';
import { readProviders } from './providers-file.ts';

const context = { env: { KEY: 'sk-1' }, idleMs: 5, refused: () => undefined };
const read = (data: unknown) => readProviders(data, context);

describe('providers.json', () => {
  it('says where a provider is and what goes there', () => {
    const reading = read({
      $schema: 'x',
      one: {
        base_url: 'https://api.example.com/v1',
        headers: { 'X-Key': 'a ${KEY} b' },
        retry_unsafe: true,
      },
      two: {
        base_url: 'https://two.example.com',
        idle_timeout_ms: 1000,
        override_params: { model: 'm' },
      },
    });
    if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
    const { providers } = reading;
    expect([...providers.keys()]).toEqual(['one', 'two']);
    expect(providers.get('one')).toMatchObject({
      retryUnsafe: true,
      idleMs: 5,
      overrideParams: undefined,
    });
    expect(providers.get('one')?.headers.get('x-key')).toBe('a sk-1 b');
    expect(providers.get('two')).toMatchObject({
      retryUnsafe: false,
      idleMs: 1000,
      overrideParams: { model: 'm' },
    });
  });

  it.each([
    [[], '', 'INVALID_VALUE', /object of providers/],
    [{ 'Not-A-Name': { base_url: 'https://a.example' } }, 'Not-A-Name', 'INVALID_VALUE', /a-z/],
    [{ one: null }, 'one', 'INVALID_VALUE', /base_url/],
    [{ one: {} }, 'one.base_url', 'MISSING_FIELD', /missing/],
    [{ one: { base_url: 7 } }, 'one.base_url', 'INVALID_VALUE', /text/],
    [{ one: { base_url: 'ftp://a.example' } }, 'one.base_url', 'INVALID_VALUE', /http/],
    [
      { one: { base_url: 'https://u:p@a.example' } },
      'one.base_url',
      'INVALID_VALUE',
      /credentials/,
    ],
    [{ one: { base_url: 'https://a.example/?a=1' } }, 'one.base_url', 'INVALID_VALUE', /query/],
    [
      { one: { base_url: 'https://a.example', base_ulr: 1 } },
      'one.base_ulr',
      'UNKNOWN_FIELD',
      /'base_url'/,
    ],
    [
      { one: { base_url: 'https://a.example', retry_unsafe: 'yes' } },
      'one.retry_unsafe',
      'INVALID_VALUE',
      /true or false/,
    ],
    [
      { one: { base_url: 'https://a.example', idle_timeout_ms: 1 } },
      'one.idle_timeout_ms',
      'INVALID_VALUE',
      /100/,
    ],
    [
      { one: { base_url: 'https://a.example', headers: [] } },
      'one.headers',
      'INVALID_VALUE',
      /object/,
    ],
    [
      { one: { base_url: 'https://a.example', headers: { a: 1 } } },
      'one.headers.a',
      'INVALID_VALUE',
      /text/,
    ],
    [
      { one: { base_url: 'https://a.example', headers: { 'a b': 'x' } } },
      'one.headers.a b',
      'INVALID_VALUE',
      /header/,
    ],
    [
      { one: { base_url: 'https://a.example', headers: { a: 'x\ny' } } },
      'one.headers.a',
      'INVALID_VALUE',
      /line breaks/,
    ],
    [
      { one: { base_url: 'https://a.example', headers: { Host: 'x' } } },
      'one.headers.Host',
      'INVALID_VALUE',
      /connection/,
    ],
    [
      { one: { base_url: 'https://a.example', headers: { a: 'x', A: 'y' } } },
      'one.headers.A',
      'INVALID_VALUE',
      /twice/,
    ],
    [
      { one: { base_url: 'https://a.example', headers: { a: '${NO}' } } },
      'one.headers.a',
      'MISSING_VARIABLE',
      /NO is not set/,
    ],
    [
      { one: { base_url: 'https://a.example', override_params: [] } },
      'one.override_params',
      'INVALID_VALUE',
      /object/,
    ],
  ])('with a fault says where: %j', (data, path, code, message) => {
    expect(read(data)).toEqual({
      ok: false,
      faults: [{ path, code, message: expect.stringMatching(message) as unknown }],
    });
  });

  it('tells all faults at once, and no secret', () => {
    const reading = read({
      one: { base_url: 'ftp://${KEY}', headers: { a: '${KEY}\n', b: 'Bearer ${NO}' } },
    });
    expect(reading).toMatchObject({ ok: false, faults: [{}, {}, {}] });
    expect(JSON.stringify(reading)).not.toContain('sk-1');
  });

  it('takes no variable from the prototype of the environment', () => {
    expect(
      read({ one: { base_url: 'https://a.example', headers: { a: '${constructor}' } } }),
    ).toMatchObject({ ok: false });
  });

  it('names no host that must not be connected to', () => {
    const { refused } = guardedConnections({ allow: ['billing.internal'] });
    const faultsOf = (url: string) => {
      const reading = readProviders({ one: { base_url: url } }, { ...context, refused });
      return reading.ok ? [] : reading.faults.map(({ code }) => code);
    };
    expect(faultsOf('https://api.openai.com')).toEqual([]);
    expect(faultsOf('http://billing.internal')).toEqual([]);
    expect(faultsOf('http://169.254.169.254/latest')).toEqual(['ADDRESS_REFUSED']);
    expect(faultsOf('http://127.0.0.1:9')).toEqual(['ADDRESS_REFUSED']);
    expect(faultsOf('http://[::ffff:10.0.0.1]/')).toEqual(['ADDRESS_REFUSED']);
  });
});

describe('the book of providers', () => {
  const connections = guardedConnections({ allow: ['loopback'] });

  function open(
    ...files: Awaited<ReturnType<ConstructorParameters<typeof ProviderRegistry>[0]['read']>>[]
  ) {
    const log = { info: vi.fn(), warn: vi.fn() };
    const onChange = vi.fn();
    const known: unknown[] = [];
    const readFile = (signature: string | undefined) => (
      known.push(signature),
      Promise.resolve(files.shift())
    );
    const book = new ProviderRegistry({
      read: readFile,
      env: {},
      idleMs: 5,
      connections,
      log,
      onChange,
    });
    return { book, log, onChange, known };
  }

  const good = { signature: '1', text: '{"one":{"base_url":"http://127.0.0.1:9"}}' };
  const policyOf = (...names: string[]) =>
    parseRoutingPolicy({ version: '1.0', providers: names.map((name) => ({ name, weight: 50 })) });

  it('says once which providers do not repeat a POST, and again when it is others', async () => {
    const base = 'http://127.0.0.1:9';
    const file = (signature: string, data: object) => ({ signature, text: JSON.stringify(data) });
    const one = { base_url: base };
    const safe = { base_url: base, retry_unsafe: true };
    const { book, log } = open(
      file('1', { one, safe }),
      file('2', { one, safe, third: safe }),
      file('3', { one: safe }),
      file('4', { one, safe }),
    );
    const told = () =>
      log.info.mock.calls
        .map(([line]) => line as unknown)
        .filter((line) => typeof line === 'string');
    await book.reload();
    const line =
      'A POST that a provider may have executed is not repeated: one. For LLM calls set "retry_unsafe": true in providers.json, or send an idempotency-key.';
    expect(told()).toEqual([line]);
    await book.reload();
    await book.reload();
    expect(told()).toEqual([line]);
    expect(book.unrepeated).toBeUndefined();
    await book.reload();
    expect(told()).toEqual([line, line]);
  });

  it('counts those that it does not name', async () => {
    const names = Array.from({ length: 22 }, (_, i) => `p${i}`);
    const data = Object.fromEntries(
      names.map((name) => [name, { base_url: 'http://127.0.0.1:9' }]),
    );
    const { book } = open({ signature: '1', text: JSON.stringify(data) });
    await book.reload();
    expect(book.unrepeated?.what).toMatch(/: p0, .*, p19 and 2 more\.$/);
  });

  it('keeps the last good file in force when a bad one follows', async () => {
    const { book, log, onChange, known } = open(
      good,
      'same',
      { signature: '2', text: '{' },
      undefined,
      good,
    );
    await book.reload();
    await book.reload();
    expect(book.names).toEqual(['one']);
    expect(onChange).toHaveBeenCalledTimes(1);
    await book.reload();
    expect(book.fault).toMatchObject({ code: 'INVALID_JSON' });
    expect(log.warn).toHaveBeenCalledWith(
      expect.anything(),
      'bad providers.json: the last good one stays in force',
    );
    await book.reload();
    expect(book.fault).toMatchObject({ code: 'UNREADABLE_FILE' });
    expect(book.names).toEqual(['one']);
    await book.reload();
    expect(book.fault).toBeUndefined();
    expect(known).toEqual([undefined, '1', '1', '2', undefined]);
  });

  it('gives a policy the functions that call its providers', async () => {
    const { book } = open(good);
    await book.reload();
    expect(Object.keys(book.optionsFor(policyOf('one')).providers)).toEqual(['one']);
  });

  it('names the providers that a policy misses', async () => {
    const { book } = open(good);
    await book.reload();
    expect(() => book.optionsFor(policyOf('one', 'oen'))).toThrow(
      /providers\.json has no provider 'oen'. It has: one. Did you mean 'one'/,
    );
  });

  it('says that there is no file where there is none', async () => {
    const { book, onChange } = open(undefined, {
      signature: '1',
      fault: { code: 'TOO_LARGE', message: 'too much' },
    });
    await book.reload();
    expect(() => book.optionsFor(policyOf('one'))).toThrow(/There is no providers\.json/);
    expect(onChange).toHaveBeenCalledTimes(1);
    await book.reload();
    expect(book.fault).toMatchObject({ code: 'TOO_LARGE', faults: [] });
  });

  it('lists the faults of the file', async () => {
    const { book } = open({ signature: '1', text: '{"one":{},"two":{}}' });
    await book.reload();
    expect(book.fault).toMatchObject({
      code: 'INVALID_PROVIDERS',
      faults: [{ path: 'one.base_url' }, {}],
    });
    expect(book.fault?.message).toBe(
      'providers.json was not taken, it has faults: one.base_url: It is missing. Write it in full: https://api.example.com/v1 And 1 more.',
    );
  });
});
