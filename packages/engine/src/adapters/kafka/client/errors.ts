/** What brokers answer, by number, and what follows from it. */
import { protocolErrorsCodesById } from './library.ts';

export const Code = {
  none: 0,
  offsetOutOfRange: 1,
  unknownTopic: 3,
  leaderNotAvailable: 5,
  notLeader: 6,
  requestTimedOut: 7,
  messageTooLarge: 10,
  coordinatorLoading: 14,
  coordinatorNotAvailable: 15,
  notCoordinator: 16,
  invalidTopic: 17,
  recordListTooLarge: 18,
  notEnoughReplicas: 19,
  notEnoughReplicasAfterAppend: 20,
  illegalGeneration: 22,
  unknownMember: 25,
  rebalanceInProgress: 27,
  topicAuthorizationFailed: 29,
  clusterAuthorizationFailed: 31,
  topicExists: 36,
  invalidReplicationFactor: 38,
  notController: 41,
  storageError: 56,
  fencedLeaderEpoch: 74,
  unknownLeaderEpoch: 75,
  memberIdRequired: 79,
  invalidRecord: 87,
} as const;

/** The leader is another one, or none for now. Nothing was written. */
const moved: ReadonlySet<number> = new Set([
  Code.leaderNotAvailable,
  Code.notLeader,
  Code.fencedLeaderEpoch,
  Code.unknownLeaderEpoch,
  Code.storageError,
]);

export function hasMoved(code: number): boolean {
  return moved.has(code);
}

/** The answer does not say whether the records are in the log. */
export function isUnsure(code: number): boolean {
  return code === Code.requestTimedOut || code === Code.notEnoughReplicasAfterAppend;
}

/** The coordinator of a group is another one, or not ready yet. */
export function isCoordinatorAway(code: number): boolean {
  return (
    code === Code.coordinatorLoading ||
    code === Code.coordinatorNotAvailable ||
    code === Code.notCoordinator
  );
}

/** `NOT_LEADER_OR_FOLLOWER`: what Kafka's documentation calls it. */
export function nameOf(code: number): string {
  return protocolErrorsCodesById[code] ?? `error ${code}`;
}

/** A broker said no. */
export class KafkaError extends Error {
  override readonly name = 'KafkaError';
  readonly errorCode: number;

  constructor(errorCode: number, what: string) {
    super(`${what}: ${nameOf(errorCode)}`);
    this.errorCode = errorCode;
  }
}

/** No connection could be made: the request was not sent. */
export class NotSentError extends Error {
  override readonly name: string = 'NotSentError';
}

/** A broker refused the connection. The message says what to do. */
export class DeniedError extends NotSentError {
  override readonly name = 'DeniedError';
}
