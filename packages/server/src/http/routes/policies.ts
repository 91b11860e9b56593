import {
  type DefinedPolicy,
  definePolicy,
  type Fault,
  isConfigError,
  simulate,
  type World,
} from 'redrive';
import { didYouMean, nearest, overlay } from 'redrive/internal';
import type { Static } from 'typebox';
import type { Settings } from '../../settings/settings.ts';
import { type WireFault, wireFaults } from '../reading/faults.ts';
import { Problem } from '../problem.ts';
import { Simulation, SimulationRequest } from '../schemas/service.ts';
import { bodyWith, refuseIf } from '../reading/validate.ts';
import { simulationView } from '../views.ts';
import { about, answersToBody, type Routes } from './route.ts';

/** So many attempts are decided within 50 ms: for so long nobody else is answered. */
const MAX_ATTEMPTS = 50_000;
const USUAL_CLIENTS = 1000;

type Given = Static<typeof SimulationRequest>;

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
      validatorCompiler: bodyWith((body) => faultsOf(body, settings)),
    },
    ({ body }, reply) => {
      refuseIf(faultsOf(body, settings));
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

function run(policy: DefinedPolicy, body: Given, clients: number) {
  return simulate(policy, { ...worldOf(body), clients, limit: MAX_ATTEMPTS });
}

function worldOf(body: object): World {
  const { policy: _, clients: __, outage_start, retry_after, ...same } = body as Given;
  return {
    ...(same as World),
    ...(outage_start === undefined ? {} : { outageStart: outage_start as number }),
    ...(retry_after === undefined ? {} : { retryAfter: retry_after as number }),
  };
}

/** What the schema cannot say, of the policy and of the world, also of a body whose fields hold anything. */
function faultsOf(body: object, settings: Settings): WireFault[] {
  const { policy } = body as Given;
  const ofPolicy = faultsIn(() => {
    if (typeof policy === 'object' && policy !== null) policyIn(policy, settings);
  });
  const ofWorld = faultsIn(() => simulate({ maxAttempts: 1 }, { ...worldOf(body), clients: 1 }));
  return [...wireFaults(ofPolicy, ['policy']), ...wireFaults(ofWorld)];
}

function faultsIn(work: () => unknown): readonly Fault[] {
  try {
    work();
    return [];
  } catch (error) {
    if (isConfigError(error)) return error.faults;
    throw error;
  }
}

function policyIn(given: Given['policy'], settings: Settings) {
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
