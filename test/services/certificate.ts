import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';

/** A self-signed certificate for one host, written by hand: Node can read them, not make them. */
export function certificate(
  host: string,
  fromMs: number,
  toMs: number,
): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = der(0x30, oid(42, 134, 72, 206, 61, 4, 3, 2));
  const commonName = der(0x30, oid(85, 4, 3), der(0x0c, Buffer.from(host)));
  const name = der(0x30, der(0x31, commonName));
  const validity = der(0x30, time(fromMs), time(toMs));
  const altName = der(0x30, oid(85, 29, 17), der(0x04, der(0x30, der(0x82, Buffer.from(host)))));
  const content = der(
    0x30,
    der(0xa0, integer(2)),
    integer(1),
    ecdsaWithSha256,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, altName)),
  );
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const signature = sign('sha256', content, createPrivateKey(key));
  const whole = der(0x30, content, ecdsaWithSha256, der(0x03, Buffer.of(0), signature));
  const lines = whole.toString('base64').replace(/.{64}/g, '$&\n');
  return { key, cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n` };
}

function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  return Buffer.concat([Buffer.from([tag, ...lengthBytes(length)]), content]);
}

/** In as few bytes as possible: some readers take nothing else. */
function lengthBytes(length: number): number[] {
  if (length < 128) return [length];
  return length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}

function integer(value: number): Buffer {
  return der(0x02, Buffer.of(value));
}

function oid(...bytes: number[]): Buffer {
  return der(0x06, Buffer.from(bytes));
}

function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/\.\d+|[-:T]/g, '');
  return der(0x18, Buffer.from(text));
}
