import { type CriterionName, criterionNames, isCriterionName } from 'redrive';
import type { Static } from 'typebox';
import { explainAnswer } from '../../criteria/explain.ts';
import { unknownCriterion } from '../../criteria/names.ts';
import type { RecentAnswer } from '../../criteria/recent.ts';
import { settingsFaults, settingsView } from '../../criteria/settings.ts';
import { answerJson, wireAnswer } from '../../criteria/wire.ts';
import type { ServiceContext } from '../../service-context.ts';
import { type WireFault, wireFaults } from '../reading/faults.ts';
import { Problem } from '../problem.ts';
import {
  CriterionAnswer,
  CriterionList,
  CriterionPath,
  CriterionRequest,
  RecentList,
} from '../schemas/criteria.ts';
import { bodyWith, refuseIf } from '../reading/validate.ts';
import { about, answers, answersToBody, forRole, type Routes } from './route.ts';

type Body = Static<typeof CriterionRequest>;

const JSON_TYPE = 'application/json; charset=utf-8';

/** Questions of a workflow engine. No route of these asks the store. */
export const criterionRoutes: Routes = (app, { criteria, settings }) => {
  app.get(
    '/api/v1/criteria',
    {
      ...forRole('reader'),
      schema: {
        ...about('criteria', 'List the criteria with the settings in force'),
        ...answers({ 200: CriterionList }),
      },
    },
    (_, reply) => reply.send(listView(criteria, settings.criterionReview)),
  );

  app.get(
    '/api/v1/criteria/:name/recent',
    {
      ...forRole('reader'),
      schema: {
        ...about(
          'criteria',
          'Show the last answers of this instance',
          'At most 100, the newest first. They are lost with a restart.',
        ),
        params: CriterionPath,
        ...answers({ 200: RecentList }, 'CRITERION_UNKNOWN'),
      },
    },
    ({ params }, reply) =>
      reply.send({ items: criteria.recent.of(knownName(params.name)).map(recentView) }),
  );

  app.post(
    '/api/v1/criteria/:name',
    {
      config: { role: 'reader', plainNumbers: true, idempotency: false },
      schema: {
        ...about(
          'criteria',
          'Evaluate a criterion',
          'A failed evaluation is answered too: 200 with its codes in `errors`. 400 is for a request that is not such a body.',
        ),
        params: CriterionPath,
        body: CriterionRequest,
        ...answersToBody({ 200: CriterionAnswer }, 'CRITERION_UNKNOWN'),
      },
      validatorCompiler: bodyWith(faultsOf),
    },
    ({ params, body }, reply) => {
      const name = knownName(params.name);
      refuseIf(faultsOf(body));
      return reply.type(JSON_TYPE).send(answerText(criteria, name, body));
    },
  );
};

/** One text, so that nobody serializes it again. */
function answerText(
  { evaluator }: ServiceContext['criteria'],
  name: CriterionName,
  { entity, entities, entity_id, context, settings }: Body,
): string {
  const ask = (one: unknown) =>
    answerJson(evaluator.evaluate(name, { entity: one, entityId: entity_id, context, settings }));
  return entities ? `{"items":[${entities.map(ask).join(',')}]}` : ask(entity);
}

/** What the schema cannot say, also of a body whose fields hold anything. */
function faultsOf({
  entity,
  entities,
  entity_id,
  settings,
}: Partial<Record<keyof Body, unknown>>): WireFault[] {
  const faults: WireFault[] = [];
  if (entity === undefined && entities === undefined) {
    const message = 'It is missing. Give entity, or entities for many.';
    faults.push({ in: 'body', path: '/entity', code: 'MISSING_FIELD', message });
  }
  if (entity !== undefined && entities !== undefined) {
    const message = 'Both entity and entities are given. Give one of them.';
    faults.push({ in: 'body', path: '/entities', code: 'INVALID_VALUE', message });
  }
  if (entities !== undefined && entity_id !== undefined) {
    const message =
      'It belongs to entity. Of entities, each has its own id in its field id or entityId.';
    faults.push({ in: 'body', path: '/entity_id', code: 'INVALID_VALUE', message });
  }
  if (settings !== undefined) faults.push(...wireFaults(settingsFaults(settings), ['settings']));
  return faults;
}

function knownName(name: string): CriterionName {
  if (isCriterionName(name)) return name;
  throw new Problem('CRITERION_UNKNOWN', unknownCriterion(name));
}

function listView({ settings }: ServiceContext['criteria'], review: boolean) {
  const items = criterionNames.map((name) => ({ name }));
  return { items, ...settingsView(settings.configured), review };
}

function recentView({ atMs, entityId, result }: RecentAnswer) {
  return {
    at: new Date(atMs).toISOString(),
    entity_id: entityId ?? null,
    explanation: explainAnswer(result),
    ...wireAnswer(result),
  };
}
