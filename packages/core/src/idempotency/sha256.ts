/**
 * SHA-256 (FIPS 180-4) of the UTF-8 bytes of a text, as 64 hex digits. Written out here because `crypto.subtle` is
 * asynchronous in every runtime, and core imports nothing.
 */
export function sha256(text: string): string {
  const words = padded(new TextEncoder().encode(text));
  const state = new Int32Array(start);
  const schedule = new Int32Array(64);
  for (let at = 0; at < words.length; at += 16) addBlock(state, schedule, words, at);
  let digest = '';
  for (const word of state) digest += (word >>> 0).toString(16).padStart(8, '0');
  return digest;
}

const BLOCK_BYTES = 64;
/** The end of the text's bit count, in 8 bytes, and the mark before the padding. */
const TAIL_BYTES = 9;

/** The bytes as big-endian words, with the mark, the padding and the count of bits. */
function padded(bytes: Uint8Array): Int32Array {
  const blocks = Math.ceil((bytes.length + TAIL_BYTES) / BLOCK_BYTES);
  const words = new Int32Array((blocks * BLOCK_BYTES) / 4);
  for (let i = 0; i < bytes.length; i++) words[i >> 2]! |= bytes[i]! << (24 - (i & 3) * 8);
  words[bytes.length >> 2]! |= 0x80 << (24 - (bytes.length & 3) * 8);
  // A text has at most 2^32 bytes: its bits need the upper word too.
  words[words.length - 2] = Math.floor(bytes.length / 0x2000_0000);
  words[words.length - 1] = bytes.length << 3;
  return words;
}

function addBlock(state: Int32Array, w: Int32Array, words: Int32Array, at: number): void {
  for (let i = 0; i < 64; i++) {
    if (i < 16) {
      w[i] = words[at + i]!;
      continue;
    }
    const early = w[i - 15]!;
    const late = w[i - 2]!;
    const s0 = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
    const s1 = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
    w[i] = w[i - 16]! + s0 + w[i - 7]! + s1;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as Eight;
  for (let i = 0; i < 64; i++) {
    const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
    const first = (h + s1 + ((e & f) ^ (~e & g)) + rounds[i]! + w[i]!) | 0;
    const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
    const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + second) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i]! += word));
}

type Eight = [number, number, number, number, number, number, number, number];

function turn(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}

/** The first 32 bits of the fractional parts of the square roots of the first 8 primes. */
const start = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/** The same of the cube roots of the first 64 primes. */
// prettier-ignore
const rounds = [
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];
