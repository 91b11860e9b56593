/** One item of the inbox, for people. */
import { facts, type Output, plural } from '../terminal/output.ts';
import { safeJson, shown } from '../terminal/safe-text.ts';
import { cut } from '../terminal/terminal.ts';
import {
  attemptLines,
  destinationText,
  errorText,
  headerLines,
  momentOf,
  payloadLines,
  stateCell,
} from '../views.ts';
import type { ItemDetail } from '../wire.ts';

const SHOWN_LINES = 40;
const SHOWN_DIFFERENCES = 50;

export function itemLines(
  item: ItemDetail,
  nowMs: number,
  full: boolean,
  output: Output,
): string[] {
  const { paint } = output;
  const { closed_by: by } = item;
  const closed = momentOf(item.closed_at, nowMs);
  const attempts = attemptLines(item.attempts, nowMs, output);
  return [
    ...facts(
      [
        ['item', String(item.id)],
        ['message', shown(item.message_id)],
        ['reason', shown(item.reason)],
        ['error', { text: errorText(item.error), style: 'red' }],
        ['state', stateCell(item.state)],
        [
          'closed',
          closed === undefined ? undefined : `${closed}${by == null ? '' : ` by ${shown(by)}`}`,
        ],
        ['destination', destinationText(item.destination)],
        ['lane', shown(item.lane)],
        ['group', shown(item.fingerprint)],
        ['order', item.ordering_key == null ? undefined : shown(item.ordering_key)],
        ['retries', `${item.retry_count} of ${item.max_retries}`],
        ['seen', plural(item.occurrences, 'time')],
        ['first', momentOf(item.first_seen_at, nowMs)],
        ['last', momentOf(item.last_seen_at, nowMs)],
        ['bulk job', item.job == null ? undefined : String(item.job)],
        ['headers', headerLines(item.headers)],
      ],
      output,
    ),
    ...(attempts.length > 0 ? ['', paint('bold', 'What happened'), ...attempts] : []),
    '',
    paint('bold', item.edited ? 'Payload, as it failed' : 'Payload'),
    ...payloadLines(item, full ? Infinity : SHOWN_LINES),
    ...differenceLines(item.difference, full, output),
    '',
    ...(item.state === 'open' ? [hint(item, output)] : []),
  ];
}

/** What an edit changes, place by place. */
export function differenceLines(
  difference: ItemDetail['difference'],
  full: boolean,
  { paint, tableWidth }: Output,
): string[] {
  if (!difference || difference.length === 0) return [];
  const most = full ? Infinity : SHOWN_DIFFERENCES;
  const room = Math.max(20, tableWidth - 4);
  const lines = difference
    .slice(0, most)
    .flatMap(({ path, before, after }) => [
      shown(path),
      ...(before === undefined ? [] : [paint('red', `  - ${cut(safeJson(before), room)}`)]),
      ...(after === undefined ? [] : [paint('green', `  + ${cut(safeJson(after), room)}`)]),
    ]);
  const rest = difference.length - most;
  if (rest > 0) lines.push(`... ${plural(rest, 'more place')}: --full shows all`);
  return ['', paint('bold', 'What the edit changes'), ...lines];
}

/** What one can do about it. */
function hint({ id, edited }: ItemDetail, { paint }: Output): string {
  const replay = edited
    ? `redrive review replay ${id} sends it as edited`
    : `redrive review replay ${id}`;
  return paint('dim', `${replay}, redrive review edit ${id}, redrive review discard ${id}`);
}
