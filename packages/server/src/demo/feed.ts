/** Reads the service's server-sent events, as a program of a user would. */
import type { FeedEvent } from './board.ts';
import { EventReader } from './event-reader.ts';

/** Until it is aborted, or the service ends. */
export async function followEvents(
  url: string,
  see: (event: FeedEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  try {
    const response = await fetch(`${url}/api/v1/events`, { signal });
    if (!response.ok) throw new Error(`The events cannot be read: status ${response.status}.`);
    const reader = new EventReader(see);
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? [])
      reader.read(decoder.decode(chunk, { stream: true }));
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
