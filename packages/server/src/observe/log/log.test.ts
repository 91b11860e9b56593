import { describe, expect, it } from 'vitest';
import { createLog, engineLog, type LogOutput } from './log.ts';

const settings = {
  serviceName: 'retry-scheduler',
  instance: 'i-1',
  logLevel: 'debug',
  logFormat: 'json',
} as const;

function collected(): LogOutput & { lines: string[]; records: Record<string, unknown>[] } {
  const lines: string[] = [];
  return {
    lines,
    write: (text) => lines.push(text),
    get records() {
      return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    },
  };
}

describe('a line', () => {
  it('says when, how bad, who, and what', () => {
    const to = collected();
    createLog(settings, to).info({ lane: 'queue:a' }, 'it works');
    expect(to.records).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        service: 'retry-scheduler',
        instance: 'i-1',
        lane: 'queue:a',
        msg: 'it works',
      },
    ]);
  });

  it('under the level that was set is not written', () => {
    const to = collected();
    const log = createLog({ ...settings, logLevel: 'warn' }, to);
    log.info('no');
    log.warn('yes');
    expect(to.records.map(({ msg }) => msg)).toEqual(['yes']);
  });

  it('has no credentials in its sentence, its fields, its errors or its child fields', () => {
    const to = collected();
    const log = createLog(settings, to);
    const url = 'amqp://me:hunter2@broker/v';
    log.info({ url, deep: { list: [url] } }, `connecting to ${url}`);
    log.error({ err: new Error(`no way to ${url}`, { cause: new Error(url) }) }, 'away');
    log.error(new Error(`no way to ${url}`));
    log.child({ url, authorization: 'Bearer 12345678' }).warn('in a child');
    expect(to.lines).toHaveLength(4);
    for (const line of to.lines) expect(line).not.toMatch(/hunter2|12345678/);
    for (const line of to.lines) expect(line).toContain('amqp://***@broker/v');
  });

  it('has no payloads and no headers that authorize', () => {
    const to = collected();
    createLog(settings, to).info(
      {
        payload: 'card of Ada',
        task: { headers: { authorization: 'key of Ada', 'content-type': 'a/b' } },
      },
      'as it came',
    );
    expect(to.lines[0]).not.toContain('Ada');
    expect(to.lines[0]).toContain('"content-type":"a/b"');
  });

  it('about a request shows neither headers nor body', () => {
    const to = collected();
    const log = createLog(settings, to);
    const req = {
      method: 'GET',
      url: '/a?token=x',
      ip: '::1',
      headers: { cookie: 'c' },
      body: 'b',
    };
    log.info({ req, res: { statusCode: 200, raw: {} } }, 'request');
    expect(to.records[0]).toMatchObject({
      req: { method: 'GET', url: '/a?token=***', ip: '::1' },
      res: { status: 200 },
    });
    expect(Object.keys(to.records[0]!['req'] as object)).toEqual(['method', 'url', 'ip']);
  });
});

describe('the log of the engine', () => {
  it('has the names of the service, message ids and trace ids', () => {
    const to = collected();
    const log = engineLog(createLog(settings, to));
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    log.debug({ id: 'm-1', lane: 'queue:a', maxItems: 3 }, 'a');
    log.info({ traceparent }, 'b');
    log.warn({ err: new Error('x') }, 'c');
    log.error({}, 'd');
    expect(to.records.map(({ level, msg }) => [level, msg])).toEqual([
      ['debug', 'a'],
      ['info', 'b'],
      ['warn', 'c'],
      ['error', 'd'],
    ]);
    expect(to.records[0]).toMatchObject({ message_id: 'm-1', max_items: 3 });
    expect(to.records[0]).not.toHaveProperty('id');
    expect(to.records[1]).toMatchObject({ trace_id: '0af7651916cd43dd8448eb211c80319c' });
    expect(to.records[2]).toMatchObject({ err: { type: 'Error', message: 'x' } });
  });
});

describe('the format for people', () => {
  it('goes through the same gates', () => {
    const to = collected();
    createLog({ ...settings, logFormat: 'pretty' }, to).info({ url: 'http://a:b@c/' }, 'hello');
    expect(to.lines).toEqual([
      expect.stringMatching(/^[\d:.]{12} INFO {2}hello url=http:\/\/\*\*\*@c\/\n$/),
    ]);
  });
});
