/** The client library, whose values are there once it is loaded. Whoever opens a connection loads it first. */
import { loadPeer } from '../../../peer.ts';
import type * as Kafka from '@platformatic/kafka';

export let ConfigResourceTypes: typeof Kafka.ConfigResourceTypes;
export let Connection: typeof Kafka.Connection;
export let createTopicsV7: typeof Kafka.createTopicsV7;
export let decodeConsumerProtocolAssignment: typeof Kafka.decodeConsumerProtocolAssignment;
export let decodeConsumerProtocolSubscription: typeof Kafka.decodeConsumerProtocolSubscription;
export let deleteRecordsV2: typeof Kafka.deleteRecordsV2;
export let describeConfigsV4: typeof Kafka.describeConfigsV4;
export let encodeConsumerProtocolAssignment: typeof Kafka.encodeConsumerProtocolAssignment;
export let encodeConsumerProtocolSubscription: typeof Kafka.encodeConsumerProtocolSubscription;
export let fetchV12: typeof Kafka.fetchV12;
export let findCoordinatorV4: typeof Kafka.findCoordinatorV4;
export let heartbeatV4: typeof Kafka.heartbeatV4;
export let joinGroupV7: typeof Kafka.joinGroupV7;
export let leaveGroupV4: typeof Kafka.leaveGroupV4;
export let listOffsetsV7: typeof Kafka.listOffsetsV7;
export let metadataV11: typeof Kafka.metadataV11;
export let murmur2: typeof Kafka.murmur2;
export let offsetCommitV8: typeof Kafka.offsetCommitV8;
export let offsetFetchV8: typeof Kafka.offsetFetchV8;
export let produceV9: typeof Kafka.produceV9;
export let protocolErrorsCodesById: typeof Kafka.protocolErrorsCodesById;
export let syncGroupV5: typeof Kafka.syncGroupV5;

export async function loadKafka(): Promise<void> {
  ({
    ConfigResourceTypes,
    Connection,
    createTopicsV7,
    decodeConsumerProtocolAssignment,
    decodeConsumerProtocolSubscription,
    deleteRecordsV2,
    describeConfigsV4,
    encodeConsumerProtocolAssignment,
    encodeConsumerProtocolSubscription,
    fetchV12,
    findCoordinatorV4,
    heartbeatV4,
    joinGroupV7,
    leaveGroupV4,
    listOffsetsV7,
    metadataV11,
    murmur2,
    offsetCommitV8,
    offsetFetchV8,
    produceV9,
    protocolErrorsCodesById,
    syncGroupV5,
  } = await loadPeer(
    'The connection to Kafka',
    '@platformatic/kafka',
    () => import('@platformatic/kafka'),
  ));
}
