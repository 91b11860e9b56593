import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { dispose } from './dispose.ts';
import { virtualClock } from '../testing.ts';

const report = vi.spyOn(console, 'error');

beforeEach(() => {
  report.mockReset().mockImplementation(() => {});
});

afterEach(async () => {
  vi.unstubAllGlobals();
  await virtualClock().advance(0);
});

describe('disposing of a result', () => {
  it('calls its asyncDispose, and its dispose only where it has none', () => {
    const [async, sync] = [vi.fn(() => Promise.resolve()), vi.fn()];
    dispose({ [Symbol.asyncDispose]: async, [Symbol.dispose]: sync });
    expect(async).toHaveBeenCalledTimes(1);
    expect(sync).not.toHaveBeenCalled();
    dispose({ [Symbol.dispose]: sync });
    expect(sync).toHaveBeenCalledTimes(1);
  });

  it('calls it as a method', () => {
    class Connection {
      closed = false;
      [Symbol.dispose]() {
        this.closed = true;
      }
    }
    const connection = new Connection();
    dispose(connection);
    expect(connection.closed).toBe(true);
  });

  it('cancels the body of a Response', async () => {
    const cancel = vi.fn();
    dispose(new Response(new ReadableStream({ cancel })));
    await virtualClock().advance(0);
    expect(cancel).toHaveBeenCalledTimes(1);
    expect(report).not.toHaveBeenCalled();
  });

  it('leaves a body alone that someone is reading', async () => {
    const cancel = vi.fn();
    const response = new Response(new ReadableStream({ cancel }));
    response.body?.getReader();
    dispose(response);
    await virtualClock().advance(0);
    expect(cancel).not.toHaveBeenCalled();
    expect(report).not.toHaveBeenCalled();
  });

  it('does no harm to a body that was read to its end', async () => {
    const response = new Response('text');
    await response.text();
    dispose(response);
    await virtualClock().advance(0);
    expect(report).not.toHaveBeenCalled();
  });

  it.each([
    undefined,
    null,
    0,
    'text',
    {},
    [],
    { body: null },
    { body: 'text' },
    { body: {} },
    { [Symbol.dispose]: 'no function' },
    new Response(null),
  ])('does nothing about %o', async (result) => {
    dispose(result);
    await virtualClock().advance(0);
    expect(report).not.toHaveBeenCalled();
  });

  it.each([
    [
      'throws',
      {
        [Symbol.dispose]() {
          throw new Error('stuck');
        },
      },
    ],
    ['rejects', { [Symbol.asyncDispose]: () => Promise.reject(new Error('stuck')) }],
    [
      'cannot even be looked at',
      {
        get body() {
          throw new Error('stuck');
        },
      },
    ],
    [
      'has a body that cannot be cancelled',
      { body: { cancel: () => Promise.reject(new Error('stuck')) } },
    ],
  ])('reports a result that %s, and goes on', async (_, result: object) => {
    dispose(result);
    await virtualClock().advance(0);
    expect(report).toHaveBeenCalledExactlyOnceWith(
      'redrive: disposing of a result failed',
      expect.objectContaining({ message: 'stuck' }),
    );
  });

  it('works where the host has no symbols for it', () => {
    vi.stubGlobal('Symbol', {});
    const cancel = vi.fn();
    const wrong = vi.fn();
    dispose({ undefined: wrong, body: { cancel } });
    expect(cancel).toHaveBeenCalledTimes(1);
    expect(wrong).not.toHaveBeenCalled();
  });
});
