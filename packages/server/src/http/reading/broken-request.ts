import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { securityHeaders } from '../limits/limits.ts';
import { Problem, PROBLEM_TYPE } from '../problem.ts';

/** What is not even HTTP, or took too long to come in: answered on the bare connection, which then ends. */
export function answerBroken(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy(error);
    return;
  }
  answerBare(socket, problemOfCode(error.code));
}

/** CONNECT asks for a tunnel. Without an answer of ours Node closes the connection in silence. */
export function answerConnect(_: unknown, socket: Duplex): void {
  answerBare(
    socket,
    new Problem('METHOD_NOT_ALLOWED', 'CONNECT is not possible: this is no proxy.'),
  );
}

function answerBare(socket: Duplex, problem: Problem): void {
  const body = problem.toText();
  const headers = {
    ...securityHeaders,
    ...problem.headers,
    'content-type': PROBLEM_TYPE,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${problem.status} ${problem.code}\r\n${lines.join('')}\r\n${body}`);
  // Ended only, it would stay open until the other side ends it too, which may never be.
  if (socket instanceof Socket) socket.destroySoon();
}

function problemOfCode(code: string | undefined): Problem {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Problem('REQUEST_HEADERS_TOO_LARGE', 'The headers are over 16 KiB.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Problem('REQUEST_TIMEOUT', 'The request took too long to come in.');
    case undefined:
    default:
      return new Problem('MALFORMED_REQUEST', 'This is not HTTP.');
  }
}
