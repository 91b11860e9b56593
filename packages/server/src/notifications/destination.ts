/** Where a due retry goes: a URL that delivers it, or a broker that takes it over. */
import type { Broker, Delivery, Destination, Publication, Task } from '@redrive/engine';
import {
  type Deliver,
  type DeliverRequest,
  type Lane,
  laneOfPriority,
} from '@redrive/notifications';
import type { Clock } from 'redrive';
import { AWAY_MS, type Delivered, readOutcome } from './delivery-outcome.ts';
import type { DeliveryTrouble } from './delivery-trouble.ts';
import { notificationOnWire } from './wire.ts';

interface DestinationParts {
  /** Each lane has its own connections: a receiver that is slow with one lane must not delay the other. */
  http: Readonly<Record<Lane, Delivery>>;
  brokers: ReadonlyMap<string, Broker>;
  clock: Clock;
  timeoutMs: number;
  /** Learns of each retry whether it could be sent. */
  trouble?: Pick<DeliveryTrouble, 'notSent' | 'sent'>;
}

/** While nobody says where to: it waits, and goes as soon as somebody does. */
const NOWHERE_MS = 60_000;
/** `kind:address`, or a URL. */
export function destinationOf(text: string): Destination {
  if (/^https?:/.test(text)) return { kind: 'http', address: text };
  const colon = text.indexOf(':');
  return { kind: text.slice(0, colon), address: text.slice(colon + 1) };
}

export function deliverTo(text: string | undefined, parts: DestinationParts): Deliver {
  if (text === undefined) return async () => ({ outcome: 'not_sent', delayMs: NOWHERE_MS });
  const destination = destinationOf(text);
  const send = destination.kind === 'http' ? post : publish;
  return async (request) => {
    const { why, ...delivered } = await send(destination, request, parts);
    const lane = laneOfPriority[request.notification.priority];
    const nowMs = parts.clock.monotonic();
    if (delivered.outcome !== 'not_sent') parts.trouble?.sent(lane, nowMs);
    // What is cut off by a stop says nothing about the other end.
    else if (!request.signal.aborted)
      parts.trouble?.notSent(lane, why ?? 'the receiver did not accept it', nowMs);
    return delivered;
  };
}

/** `why` nothing was sent. */
type Sent = Delivered & { why?: string | undefined };

async function post(
  to: Destination,
  request: DeliverRequest,
  { http, clock, timeoutMs }: DestinationParts,
): Promise<Sent> {
  const endsMs = clock.monotonic() + timeoutMs;
  const lane = laneOfPriority[request.notification.priority];
  const outcome = await http[lane].deliver(taskOf(to, request), {
    signal: request.signal,
    attempt: request.attempt,
    maxAttempts: request.attempt,
    get remainingMs() {
      return Math.max(0, endsMs - clock.monotonic());
    },
  });
  const failure = 'failure' in outcome ? outcome.failure : undefined;
  return { ...readOutcome(outcome), why: failure?.message ?? failure?.code };
}

async function publish(
  to: Destination,
  request: DeliverRequest,
  { brokers, timeoutMs }: DestinationParts,
): Promise<Sent> {
  const broker = brokers.get(to.kind);
  if (!broker) {
    return {
      outcome: 'not_sent',
      delayMs: AWAY_MS,
      why: `no broker for ${to.kind}: destinations is configured`,
    };
  }
  const away = 'the broker cannot be reached';
  if (!broker.isReady) return { outcome: 'not_sent', delayMs: AWAY_MS, why: away };
  const [answer] = broker.publish(
    [
      {
        address: to.address,
        payload: bodyOf(request),
        headers: headersOf(request),
        contentType: 'application/json',
        ...keyFor(request.notificationId),
      },
    ],
    { timeoutMs },
  );
  const published = await answer!;
  switch (published.outcome) {
    case 'confirmed':
      return { outcome: 'handed_over' };
    case 'unroutable':
    case 'impossible': {
      const { message } = published.failure ?? {
        message: `${to.kind}:${to.address} does not exist. Create it, or correct NOTIFICATION_DELIVERY.`,
      };
      return {
        outcome: 'failed',
        errorCode: 'UNROUTABLE',
        ...(message === undefined ? {} : { errorMessage: message }),
      };
    }
    case 'refused':
    case 'unknown':
    case 'lost':
    case 'away':
      return { outcome: 'not_sent', delayMs: AWAY_MS, why: published.failure?.message ?? away };
  }
}

/** What belongs to one notification stays in order where the broker has partitions. Other brokers do not look at it. */
export function keyFor(key: string): Pick<Publication, 'extra'> {
  return { extra: { kafka: { key: Buffer.from(key).toString('base64') } } };
}

function headersOf({
  notificationId,
  deviceId,
  attempt,
}: DeliverRequest): Record<string, string | number> {
  return {
    'x-notification-id': notificationId,
    'x-device-id': encodeURIComponent(deviceId),
    'x-attempt-number': attempt,
  };
}

function bodyOf({
  notificationId,
  notification,
  deviceId,
  attempt,
  collapseKey,
}: DeliverRequest): Buffer {
  return Buffer.from(
    JSON.stringify({
      notification_id: notificationId,
      device_id: deviceId,
      attempt_number: attempt,
      collapse_key: collapseKey,
      ...notificationOnWire(notification),
    }),
  );
}

/** As much of a task as a delivery looks at. */
function taskOf(destination: Destination, request: DeliverRequest): Task {
  const headers = Object.entries(headersOf(request)).map(([name, value]) => [name, String(value)]);
  const nowMs = Date.now();
  return {
    id: 0,
    messageId: request.notificationId,
    destination,
    lane: '',
    payload: bodyOf(request),
    context: {
      contentType: 'application/json',
      headers: Object.fromEntries(headers) as Record<string, string>,
    },
    status: 'pending',
    attempt: request.attempt - 1,
    maxAttempts: request.attempt,
    uncounted: 0,
    delayMs: 0,
    generation: 0,
    dueAtMs: nowMs,
    visibleAtMs: nowMs,
    createdAtMs: nowMs,
    claims: 1,
    arrived: false,
    cancelling: false,
    blocked: false,
  };
}
