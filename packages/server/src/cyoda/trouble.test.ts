import { Code, ConnectError } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { troubleOf } from './trouble.ts';

const url = 'grpcs://cyoda.example.com';

function unavailable(said: string, at = { url, isJoined: false }) {
  return troubleOf(new ConnectError(said, Code.Unavailable), at);
}

describe('a server that cannot be reached', () => {
  it.each([
    [
      'connect ECONNREFUSED 127.0.0.1:9090',
      /ECONNREFUSED 127\.0\.0\.1:9090\)\. It is tried again\.$/,
    ],
    [
      '40FD:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:../ssl/x.c:77:\n',
      /\(wrong version number\)\. The server does not speak TLS at this port: use grpc:\/\//,
    ],
    ['self-signed certificate', /NODE_EXTRA_CA_CERTS/],
    ["Hostname/IP does not match certificate's altnames", /a host that the certificate names/],
  ])('is told with its remedy: %s', (said, message) => {
    const trouble = unavailable(said);
    expect(trouble).toMatchObject({ code: 'CYODA_UNREACHABLE', isRefusal: false });
    expect(trouble.message).toMatch(message);
  });
});

describe('a stream that was lost', () => {
  it('before the greeting may be at the wrong port', () => {
    const thrown = new ConnectError('Protocol error', Code.Internal);
    const plain = troubleOf(thrown, { url: 'grpc://cyoda.example.com', isJoined: false });
    expect(plain.code).toBe('CYODA_STREAM_LOST');
    expect(plain.message).toMatch(/needs the gRPC port.*grpcs:\/\/ where that port expects TLS/);
    const tls = troubleOf(thrown, { url, isJoined: false });
    expect(tls.message).toMatch(/needs the gRPC port, 9090 by default\. It is joined again\.$/);
  });

  it('after the greeting was at the right one', () => {
    const trouble = unavailable('read ECONNRESET', { url, isJoined: true });
    expect(trouble.code).toBe('CYODA_STREAM_LOST');
    expect(trouble.message).toBe(
      `The stream to ${url} was lost (Unavailable: read ECONNRESET). It is joined again.`,
    );
  });
});
