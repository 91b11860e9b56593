import { type DefinedPolicy, definePolicy, simulate } from 'redrive';
import { didYouMean, nearest, overlay } from 'redrive/internal';
import type { Static } from 'typebox';
import type { Settings } from '../../settings/settings.ts';
import { wireFaults } from '../reading/faults.ts';
import { Problem } from '../problem.ts';
import { Simulation, SimulationRequest } from '../schemas/service.ts';
import { invalid } from '../reading/validate.ts';
import { simulationView } from '../views.ts';
import { about, answersToBody, type Routes } from './route.ts';

/** So many attempts are decided within 50 ms: for so long nobody else is answered. */
const MAX_ATTEMPTS = 50_000;
const USUAL_CLIENTS = 1000;

export const policyRoutes: Routes = (app, { settings }) => {
  app.post(
    '/api/v1/policies/simulate',
    {
      config: { role: 'reader', idempotency: false },
      schema: {
        ...about(
          'policies',
          'Try a policy on a service that goes down',
          `Clients times attempts can be ${MAX_ATTEMPTS} at most; \`redrive simulate\` has no such limit. The same request gives the same result.`,
        ),
        body: SimulationRequest,
        ...answersToBody({ 200: Simulation }, 'TOO_LARGE_SIMULATION', 'UNKNOWN_POLICY'),
      },
    },
    ({ body }, reply) => {
      const policy = policyIn(body.policy, settings);
      const { clients = USUAL_CLIENTS } = body;
      const attempts = clients * mostAttempts(policy);
      if (attempts > MAX_ATTEMPTS) {
        throw new Problem(
          'TOO_LARGE_SIMULATION',
          `${clients} clients with up to ${mostAttempts(policy)} attempts each are ${attempts}; ${MAX_ATTEMPTS} at most. Use fewer clients, or \`redrive simulate\`.`,
        );
      }
      return reply.send(simulationView(run(policy, body, clients)));
    },
  );
};

function run(policy: DefinedPolicy, body: Static<typeof SimulationRequest>, clients: number) {
  const { policy: _, clients: __, outage_start, retry_after, ...same } = body;
  try {
    return simulate(policy, {
      ...(same as object),
      clients,
      ...(outage_start === undefined ? {} : { outageStart: outage_start as number }),
      ...(retry_after === undefined ? {} : { retryAfter: retry_after as number }),
      limit: MAX_ATTEMPTS,
    });
  } catch (error) {
    throw faultsOfWorld(error);
  }
}

function policyIn(given: Static<typeof SimulationRequest>['policy'], settings: Settings) {
  if (given === undefined) return definePolicy(settings.policy);
  if (typeof given !== 'string') {
    // As for a message that is sent with it.
    return overlay([
      { policy: settings.policy, origin: 'the policy of the service' },
      { policy: given, origin: 'the policy of this request' },
    ]);
  }
  const { policies } = settings;
  if (Object.hasOwn(policies, given)) return definePolicy(policies[given]);
  const hint = didYouMean(nearest(given, Object.keys(policies)));
  throw new Problem('UNKNOWN_POLICY', `There is no policy '${given}' here.${hint}`);
}

function mostAttempts(policy: DefinedPolicy): number {
  const names = Object.keys(policy.overrides ?? {});
  return Math.max(policy.maxAttempts, ...names.map((name) => policy.for(name)?.maxAttempts ?? 0));
}

/** Its faults stand beside the policy, not in it. */
function faultsOfWorld(error: unknown): unknown {
  const faults = (Object(error) as { faults?: Parameters<typeof wireFaults>[0] }).faults;
  return faults ? invalid(wireFaults(faults)) : error;
}
