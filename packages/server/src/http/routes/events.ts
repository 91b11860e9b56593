import { Type } from 'typebox';
import { EventReaders } from '../event-readers.ts';
import { about, answers, forRole, type Routes, textAnswer } from './route.ts';

/** What happens here, as it happens. */
export const eventRoutes: Routes = (app, { feed }) => {
  const readers = new EventReaders(feed);
  app.addHook('preClose', (done) => {
    readers.close();
    done();
  });

  app.get(
    '/api/v1/events',
    {
      ...forRole('reader'),
      schema: {
        ...about(
          'events',
          'Follow what happens',
          'Server-sent events of this instance, without payloads. `Last-Event-ID` goes on after that event; where it is not known any more the first event is `reset`. Who reads too slowly is cut off, and may come back.',
        ),
        headers: Type.Object({
          'last-event-id': Type.Optional(Type.String({ maxLength: 200 })),
        }),
        ...answers({ 200: textAnswer('text/event-stream', 'Events.') }, 'TOO_MANY_READERS'),
      },
    },
    (request, reply) => {
      readers.add(request, reply);
      return reply;
    },
  );
};
