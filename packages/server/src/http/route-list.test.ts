import { describe, expect, it } from 'vitest';
import { RouteList } from './route-list.ts';

const handler = () => undefined;

describe('the list of routes', () => {
  it('knows the methods of a path', () => {
    const routes = new RouteList();
    routes.add({ method: 'GET', url: '/a/:id', config: { role: 'reader' }, handler });
    routes.add({ method: ['PUT', 'DELETE'], url: '/a/:id', config: { role: 'admin' }, handler });
    routes.add({ method: 'GET', url: '/x.json', config: { role: 'open' }, handler });
    routes.add({ method: 'POST', url: '/a/all', config: { role: 'admin' }, handler });
    expect(routes.methodsOf('/a/all')).toEqual(['POST']);
    expect(routes.methodsOf('/a/7')).toEqual(['DELETE', 'GET', 'PUT']);
    expect(routes.methodsOf('/a/7/b')).toEqual([]);
    expect(routes.methodsOf('/x.json')).toEqual(['GET']);
    expect(routes.methodsOf('/xyjson')).toEqual([]);
  });

  it('takes none that does not say who may use it', () => {
    const add = () => new RouteList().add({ method: 'GET', url: '/secret', handler });
    expect(add).toThrow('GET /secret needs a role');
  });
});
