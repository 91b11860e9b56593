/** `redrive lanes`: where things go, in which state that is, and the switch. */
import { isLane, isLaneChange, isLaneCounts, isPageOf } from '../answers.ts';
import { type Client, clientOf, connection } from '../client.ts';
import { command, type Command, exits } from '../command.ts';
import { limit, printList } from '../tasks/listing.ts';
import { type Column, outputOf, plural } from '../terminal/output.ts';
import { shown } from '../terminal/safe-text.ts';
import { duration } from '../terminal/terminal.ts';
import { stateCell, textOf } from '../views.ts';
import type { LaneChange, LaneView } from '../wire.ts';

const columns: readonly Column[] = [
  { title: 'LANE', least: 16 },
  { title: 'STATE' },
  { title: 'RUNNING', right: true },
  { title: 'AT ONCE', right: true, optional: true },
  { title: 'PER SECOND', right: true, optional: true },
  { title: 'NEXT', optional: true },
  { title: 'NOTE', optional: true, least: 10 },
];

/** As the engine has them, which a command must not wait for. */
const states = ['closed', 'open', 'probing', 'paused', 'NO_HANDLER'] as const;

export const commands: readonly Command[] = [
  command({
    name: 'lanes list',
    summary: 'List the lanes: what waits where, and whether it is let through.',
    usage: 'lanes list',
    about:
      'A lane is a queue, or the origin of a URL. closed: all is well. open: it failed too often, and rests. probing: one ' +
      'delivery at a time tries whether it is back. paused: by an operator. NO_HANDLER: the instance that was asked cannot ' +
      'deliver there; for a queue it has no RABBITMQ_URL, or does only a part of the work.',
    options: {
      state: { kind: 'choice', of: states, summary: 'Only those in this state.' },
      kind: { kind: 'text', value: 'kind', summary: 'Only those of this kind: queue, http.' },
      prefix: { kind: 'text', value: 'text', summary: 'Only those whose name begins so.' },
      blocked: {
        kind: 'flag',
        summary: 'Only those in which tasks wait behind an item of the inbox.',
      },
      limit,
      ...connection,
    },
    examples: [
      'redrive lanes list # by name',
      'redrive lanes list --state open # lanes whose breaker is open',
      'redrive lanes list --blocked # where tasks wait behind an item of the inbox',
    ],
    async run({ options, json }, io) {
      const { state, kind, prefix, blocked } = options;
      const isFiltered =
        state !== undefined || kind !== undefined || prefix !== undefined || blocked;
      const client = clientOf(options, io);
      const output = outputOf(io, json);
      const lanes = await printList(client, output, json, {
        isOne: isLane,
        path: '/api/v1/lanes',
        query: { state, kind, prefix, blocked: blocked ? 'true' : undefined },
        limit: options.limit,
        columns,
        rowOf,
        first: 'first',
        none: isFiltered ? 'There is no such lane.' : 'Nothing was sent anywhere yet.',
      });
      if (lanes.length === options.limit) output.say(await countText(client));
      if (lanes.length > 0) output.say('', ...legendOf(lanes));
      return exits.ok;
    },
  }),
  switchOf('pause', 'Stop deliveries of a lane; what comes in waits.'),
  switchOf('resume', 'Let a lane that was paused deliver again.'),
];

function switchOf(action: 'pause' | 'resume', summary: string): Command<typeof connection> {
  return command({
    name: `lanes ${action}`,
    summary,
    usage: `lanes ${action} <lane>`,
    options: connection,
    examples: [
      `redrive lanes ${action} https://api.example.com`,
      `redrive lanes ${action} queue:orders`,
    ],
    async run({ positionals, options, json }, io) {
      const client = clientOf(options, io);
      const output = outputOf(io, json);
      const lane = positionals[0]!;
      const path = `/api/v1/lanes/${encodeURIComponent(lane)}/${action}`;
      const changed = client.as(isLaneChange, await client.post(path));
      output.data(changed);
      output.say(
        action === 'pause'
          ? `${shown(lane)} is paused. redrive lanes resume ${shown(lane)} lets it go on.`
          : await resumedText(changed, client),
      );
      if (changed.known === false) {
        output.say(
          'Nothing waits there, and nothing was delivered there lately. Is the name right?',
        );
      }
      return exits.ok;
    },
  });
}

async function countText(client: Client): Promise<string> {
  const query = { limit: 1, counts: true };
  const { counts } = client.as(isLaneCounts, await client.get('/api/v1/lanes', query));
  const known = states.map((state) => ({ state, count: counts[state] ?? 0 }));
  const all = known.reduce((sum, { count }) => sum + count, 0);
  const parts = known
    .filter(({ count }) => count > 0)
    .map(({ state, count }) => `${count} ${state}`);
  return `There are ${all} lanes in all: ${parts.join(', ')}.`;
}

/** It may rest all the same: a breaker is not closed by an operator's word. */
async function resumedText(changed: LaneChange, client: Client): Promise<string> {
  const { lane: name, known, was_paused: wasPaused } = changed;
  if (known === false) return `${shown(name)} was not paused.`;
  const query = { prefix: name, limit: 1 };
  const { items } = client.as(isPageOf(isLane), await client.get('/api/v1/lanes', query));
  const lane = items.find((one) => one.lane === name);
  const note = lane ? noteOf(lane) : '';
  if (note === '') {
    return wasPaused === false
      ? `${shown(name)} was not paused. It delivers as before.`
      : `${shown(name)} delivers again.`;
  }
  const why = lane?.state === 'open' ? `its breaker is open, and it is ${note}` : note;
  return `${shown(name)} is not paused, but ${why}.`;
}

/** The names come from circuit breakers: not everybody knows that `closed` is the good state. */
const meanings: Readonly<Record<string, string>> = {
  closed: 'deliveries run as usual; the breaker is closed.',
  open: 'no deliveries run, because too many failed; the breaker is open.',
  probing: 'single deliveries test whether the destination works again.',
  paused: 'an operator paused the lane; redrive lanes resume resumes it.',
  NO_HANDLER:
    'the instance that answered cannot deliver to this lane: it has no handler, or no broker for the queue.',
};

function legendOf(lanes: readonly LaneView[]): string[] {
  const there = new Set<string>(lanes.map(({ state }) => state));
  const known = Object.entries(meanings).filter(([state]) => there.has(state));
  return known.map(([state, meaning]) => `${state}: ${meaning}`);
}

function rowOf(view: LaneView) {
  const { lane, state, running, limits, next_in_ms: next } = view;
  return [
    shown(lane),
    stateCell(state),
    String(running),
    String(limits?.concurrency ?? ''),
    String(limits?.rate_per_second ?? ''),
    next == null ? '' : next <= 0 ? 'due now' : `due in ${duration(next)}`,
    noteOf(view),
  ];
}

function noteOf(view: LaneView): string {
  const { state, paused_by: by, probe_in_ms: probe, blocked, blocked_by: items } = view;
  if (blocked != null) {
    return `${plural(blocked, 'task')} blocked by ${plural(items ?? 1, 'inbox item')}`;
  }
  if (probe != null) return `tried again in ${duration(probe)}`;
  if (state === 'NO_HANDLER') return 'this instance cannot deliver there';
  return state === 'paused' && textOf(by) !== undefined ? `by ${textOf(by)}` : '';
}
