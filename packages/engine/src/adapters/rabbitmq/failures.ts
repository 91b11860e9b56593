/** What goes wrong between here and the broker, in one place: sentences, and nothing secret. */
import { textOf } from '../../broker/answers.ts';

/** Why there is no connection, for people. A URL never stands in it. */
export function whyNoConnection(error: unknown): string {
  const text = textOf(error);
  if (text.includes('ACCESS_REFUSED') || text.includes('ACCESS-REFUSED')) {
    return 'RabbitMQ refuses the user or the password in the URL.';
  }
  // The broker closes the connection instead of opening it.
  if (text.includes('Expected ConnectionOpenOk')) {
    return 'The broker did not open the virtual host of the URL: it is missing, or the user may not enter it.';
  }
  return `The broker cannot be reached: ${text}`;
}

/** The limit that the broker names when it closes a channel for a message over it. */
export function messageLimitIn(text: string): number | undefined {
  const limit = /larger than configured max size (\d+)/.exec(text)?.[1];
  return limit === undefined ? undefined : Number(limit);
}
