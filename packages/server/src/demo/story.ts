/** What happens when in the demo, and how it is told. Pure. */
import { count } from '../cli/terminal/terminal.ts';
import { type ReceiverName, names } from './receivers.ts';

/** What is known of one receiver's lane. */
export interface LaneCounts {
  accepted: number;
  delivered: number;
  /** Deliveries that failed and are tried again. */
  retries: number;
  inbox: number;
  state: string;
}

export type Lanes = Readonly<Record<ReceiverName, LaneCounts>>;

const FIRST_OUTAGE_MS = 4000;
const OUTAGE_MS = 7000;
const PERIOD_MS = 24_000;
const POISON_MS = 1500;
/** So few wait at any time. */
const USUAL_BACKLOG = 15;

export function isDownAt(elapsedMs: number): boolean {
  const since = (elapsedMs - FIRST_OUTAGE_MS) % PERIOD_MS;
  return since >= 0 && since < OUTAGE_MS;
}

/** How many poison messages have been sent by then. */
export function poisonsBy(elapsedMs: number): number {
  return elapsedMs < POISON_MS ? 0 : Math.floor((elapsedMs - POISON_MS) / PERIOD_MS) + 1;
}

export function waiting({ accepted, delivered, inbox }: LaneCounts): number {
  return Math.max(0, accepted - delivered - inbox);
}

/** What is going on, in a sentence or two. */
export function sentence(lanes: Lanes, elapsedMs: number): string {
  const { bank } = lanes;
  const isDown = isDownAt(elapsedMs);
  const backlog = waiting(bank);
  if (isDown && bank.state === 'closed') {
    return 'bank has just gone down. What fails there waits and is tried again.';
  }
  if (bank.state === 'open') {
    return `bank is down and its breaker is open: ${count(backlog)} wait, and nothing is sent there. The others go on.`;
  }
  if (bank.state === 'probing') {
    return `One delivery at a time tries whether bank is back. ${count(backlog)} wait.`;
  }
  if (backlog > USUAL_BACKLOG)
    return `bank is back. ${count(backlog)} that waited are on their way.`;
  const inbox = names.reduce((sum, name) => sum + lanes[name].inbox, 0);
  if (inbox > 0) {
    return `All is well, but for ${inbox === 1 ? 'a message' : `${inbox} messages`} that failed every time: in the inbox, for somebody to look at.`;
  }
  return 'All is well. stock refuses every third message: those wait a little and are tried again.';
}
