import { readFileSync } from 'node:fs';
import { Type } from 'typebox';
import { homePage, homePolicy, wantsPage } from '../home-page.ts';
import { documentOf } from '../openapi.ts';
import { Live, Ready, Root } from '../schemas/service.ts';
import { about, answers, forRole, plainAnswers, type Routes, textAnswer } from './route.ts';

export const { version } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as { version: string };

/** What this is, whether it is well, and its numbers. */
export const serviceRoutes: Routes = (app, context) => {
  const { settings, instance, health, metrics, notifications, routing } = context;
  const has = {
    hasNotifications: notifications !== undefined,
    hasRouting: routing.routers !== undefined,
  };
  app.get(
    '/',
    {
      ...forRole('open'),
      schema: {
        ...about(
          'service',
          'Say what this is',
          'A browser gets a page. Once there are tokens, only a request with one is told the version, the instance and details.',
        ),
        ...plainAnswers({ 200: Root }),
      },
    },
    async ({ role, headers, socket }, reply) => {
      const known = { name: settings.serviceName, ...(role ? { version, instance } : {}) };
      if (!wantsPage(headers.accept)) return reply.send({ ...known, links: linksOf(has) });
      const { ready, checks } = await health.ready();
      const port = socket.localPort ?? settings.port;
      const shown = role ? checks : checks.map(({ name, ok }) => ({ name, ok }));
      const page = homePage({ ...known, ...has, ready, checks: shown, port });
      return reply
        .headers({ 'content-security-policy': homePolicy, vary: 'accept' })
        .type('text/html; charset=utf-8')
        .serializer((text: unknown) => String(text))
        .send(page);
    },
  );

  let document: string | undefined;
  app.get(
    '/openapi.json',
    {
      ...forRole('reader'),
      schema: {
        ...about('service', 'Show this document'),
        ...answers({
          200: Type.Unsafe<unknown>({
            type: 'object',
            additionalProperties: true,
            description: 'OpenAPI 3.1.',
          }),
        }),
      },
    },
    (_, reply) => {
      document ??= JSON.stringify(documentOf(app));
      return reply.type('application/json; charset=utf-8').send(document);
    },
  );

  app.get(
    '/health/live',
    {
      ...forRole('open'),
      exposeHeadRoute: true,
      schema: {
        ...about('service', 'Say that the process runs'),
        ...plainAnswers({ 200: Live }),
      },
    },
    (_, reply) => reply.send({ status: 'ok' }),
  );

  app.get(
    '/health/ready',
    {
      ...forRole('open'),
      exposeHeadRoute: true,
      schema: {
        ...about(
          'service',
          'Say whether it can do its work, and what is missing',
          'Details name hosts, paths and queues. Once there are tokens, only a request with one is shown them.',
        ),
        ...plainAnswers({
          200: { ...Ready, description: 'It can.' },
          503: { ...Ready, description: 'It cannot: see the checks that are not ok.' },
        }),
      },
    },
    async ({ role }, reply) => {
      const { ready, checks } = await health.ready();
      const shown = role ? checks : checks.map(({ name, ok }) => ({ name, ok }));
      return reply.code(ready ? 200 : 503).send({ ready, checks: shown });
    },
  );

  app.get(
    '/metrics',
    {
      ...forRole('reader'),
      schema: {
        ...about('service', 'Show the numbers', 'In the format of Prometheus.'),
        ...answers({ 200: textAnswer('text/plain', 'Numbers.') }),
      },
    },
    async (_, reply) => reply.type(metrics.contentType).send(await metrics.text()),
  );
};

/** Parts that are off have no link. */
function linksOf({ hasNotifications, hasRouting }: Record<string, boolean>) {
  return {
    ...links,
    ...(hasNotifications ? { notifications: '/api/v1/notifications' } : {}),
    ...(hasRouting ? { routing: '/api/v1/route/policies' } : {}),
  };
}

const links = {
  retries: '/api/v1/retries',
  review: '/api/v1/review',
  lanes: '/api/v1/lanes',
  criteria: '/api/v1/criteria',
  events: '/api/v1/events',
  ready: '/health/ready',
  metrics: '/metrics',
  openapi: '/openapi.json',
};
