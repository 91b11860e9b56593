/** The client library, whose values are there once it is loaded. Whoever opens a connection loads it first. */
import { loadPeer } from '../../peer.ts';
import type * as JetStream from '@nats-io/jetstream';
import type * as Transport from '@nats-io/transport-node';

export let AckPolicy: typeof JetStream.AckPolicy;
export let DeliverPolicy: typeof JetStream.DeliverPolicy;
export let DiscardPolicy: typeof JetStream.DiscardPolicy;
export let JetStreamApiError: typeof JetStream.JetStreamApiError;
export let RetentionPolicy: typeof JetStream.RetentionPolicy;
export let StorageType: typeof JetStream.StorageType;
export let jetstream: typeof JetStream.jetstream;
export let jetstreamManager: typeof JetStream.jetstreamManager;
export let AuthorizationError: typeof Transport.AuthorizationError;
export let PermissionViolationError: typeof Transport.PermissionViolationError;
export let connect: typeof Transport.connect;
export let createInbox: typeof Transport.createInbox;
export let credsAuthenticator: typeof Transport.credsAuthenticator;
export let errors: typeof Transport.errors;
export let headers: typeof Transport.headers;
export let nanos: typeof Transport.nanos;

export async function loadNats(): Promise<void> {
  ({
    AckPolicy,
    DeliverPolicy,
    DiscardPolicy,
    JetStreamApiError,
    RetentionPolicy,
    StorageType,
    jetstream,
    jetstreamManager,
  } = await loadPeer(
    'The connection to NATS',
    '@nats-io/jetstream',
    () => import('@nats-io/jetstream'),
    '@nats-io/transport-node @nats-io/jetstream',
  ));
  ({
    AuthorizationError,
    PermissionViolationError,
    connect,
    createInbox,
    credsAuthenticator,
    errors,
    headers,
    nanos,
  } = await loadPeer(
    'The connection to NATS',
    '@nats-io/transport-node',
    () => import('@nats-io/transport-node'),
    '@nats-io/transport-node @nats-io/jetstream',
  ));
}
