import { EventEmitter } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import { BodyBudget } from './body-budget.ts';

const MiB = 1024 * 1024;

function request(headers: Record<string, string>): FastifyRequest {
  return { headers } as unknown as FastifyRequest;
}

describe('bodies that come in at once', () => {
  it('are refused past 256 MiB in all, and taken again when some are over', () => {
    const budget = new BodyBudget(8 * MiB);
    const replies = Array.from({ length: 33 }, () => ({ raw: new EventEmitter() }));
    const large = request({ 'content-length': String(8 * MiB) });
    const begin = (i: number) => budget.begin(large, replies[i] as unknown as FastifyReply);
    for (let i = 0; i < 32; i++) expect(begin(i)).toBeUndefined();
    expect(begin(32)).toMatchObject({ code: 'INTAKE_FULL', status: 503 });
    replies[0]!.raw.emit('close');
    expect(begin(32)).toBeUndefined();
  });

  it('of unknown length count as large as they may be, and none counts nothing', () => {
    const budget = new BodyBudget(128 * MiB);
    const reply = () => ({ raw: new EventEmitter() }) as unknown as FastifyReply;
    const chunked = request({ 'transfer-encoding': 'chunked' });
    expect(budget.begin(chunked, reply())).toBeUndefined();
    expect(budget.begin(chunked, reply())).toBeUndefined();
    expect(budget.begin(request({}), reply())).toBeUndefined();
    expect(budget.begin(request({ 'content-length': '16384' }), reply())).toBeUndefined();
    expect(budget.begin(request({ 'content-length': '16385' }), reply())).toBeDefined();
  });
});
