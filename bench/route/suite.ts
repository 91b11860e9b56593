import type { Suite } from '../result.ts';
import { deciding } from './decide.ts';
import { gateway } from './gateway/case.ts';
import { routing, routingTimed } from './router.ts';

export const suite: Suite = {
  name: 'route',
  about: 'routing between providers: the decision, the router and the gateway',
  cases: [deciding, routing, routingTimed, gateway],
};
