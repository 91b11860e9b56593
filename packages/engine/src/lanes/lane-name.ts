import { didYouMean } from 'redrive/internal';

/** What is wrong with the name of a lane. The name of a handler or a URL with a path is a likely slip: no lane has it. */
export function laneNameFault(lane: unknown): string | undefined {
  if (typeof lane === 'string' && /^https?:/i.test(lane)) {
    const url = URL.parse(lane);
    if (url?.origin === lane) return undefined;
    return fault(lane, url?.origin);
  }
  if (typeof lane === 'string' && /^[a-z][a-z0-9_-]*:./.test(lane)) return undefined;
  return fault(lane, typeof lane === 'string' && isName(lane) ? `handler:${lane}` : undefined);
}

function fault(lane: unknown, meant: string | undefined): string {
  const found = typeof lane === 'string' ? `'${lane.slice(0, 60)}'` : `a ${typeof lane}`;
  return `${found} is not a lane.${didYouMean(meant)} A lane is 'handler:name', 'queue:name', or the origin of a URL ('https://host').`;
}

/** What a handler is probably called. */
function isName(text: string): boolean {
  return text.length <= 60 && /^[\w./-]+$/.test(text);
}
