import type { Suite } from '../result.ts';
import { deciding } from './decide.ts';
import { routing, routingTimed } from './router.ts';

export const suite: Suite = {
  name: 'route',
  about: 'routing between providers: the decision and the router',
  cases: [deciding, routing, routingTimed],
};
